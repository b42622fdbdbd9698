"""Is local SGD better than mini-batch SGD?  The homogeneous convex upper bound, here with its constants.

Setting.  As in ``pasgd_gap``: ``rounds`` rounds of tau local steps, step size tuned to the constants.

Derivation.  In ``pasgd_gap_sharp`` with K = tau R take eta = min(1/L, R0 sqrt(m)/(sigma sqrt(K)),
(2 R0^2/(L sigma2 tau K))^(1/3)).  R0^2/(2 eta K) is at most the sum of its values at the three; the second and the
third also bound the noise term and the term of the local steps (with (1 - 1/m)(tau - 1) <= tau)::

    L R0^2/(2K) + (1/2 + 1/2) sigma R0/sqrt(m K) + (1/2 + 1/4) 2^(-1/3) (L sigma2 R0^4 tau/K^2)^(1/3).

The third is the best for its two terms, a/eta + b eta^2 with a = R0^2/(2K) and b = L sigma2 tau/8.

The published statement has an absolute constant before the same three terms; 1 therefore suffices.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import R0, L, m, rounds, sigma2, tau

woodworth_upper = Bound(
    name="woodworth_upper",
    quantity="average over all local steps of E F(xbar) - inf F, tuned step size, convex, homogeneous",
    side=Side.UPPER,
    value=L * R0**2 / (2 * tau * rounds)
    + sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds)
    + sp.Rational(3, 4) * sp.cbrt(L * sigma2 * R0**4 / 2) / (sp.cbrt(tau) * rounds ** sp.Rational(2, 3)),
    reference=Reference("woodworth2020", "homogeneous convex case; constants derived here", arxiv="2002.07839"),
    status=Status.PROVED,
    setting=Setting(
        SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD, Property.TUNED_STEP}, Conclusion.GAP
    ),
    examples=(
        Example(
            {"L": 2, "R0": 1, "sigma2": 1, "m": 1, "tau": 1, "rounds": 64},
            "0.1875",
            "by hand: 1/64 + 1/8 + (3/4)/16",
        ),
    ),
    note="On quadratics the last term is absent: local steps cost nothing there.",
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
