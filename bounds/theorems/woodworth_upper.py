"""Is local SGD better than mini-batch SGD?  The homogeneous convex upper bound, up to a constant.

``tau`` local steps in each of ``rounds`` rounds; R0 bounds the distance from the start to a minimiser.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..symbols import R0, L, m, rounds, sigma2, tau

woodworth_upper = Bound(
    name="woodworth_upper",
    quantity="E F - inf F of local SGD with tuned step size, convex, homogeneous, up to a constant",
    side=Side.UPPER,
    value=L * R0**2 / (tau * rounds)
    + sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds)
    + sp.cbrt(L * sigma2 * R0**4) / (sp.cbrt(tau) * rounds ** sp.Rational(2, 3)),
    reference=Reference("woodworth2020", "homogeneous convex case", arxiv="2002.07839"),
    status=Status.RECALLED,
    examples=(
        Example(
            {"L": 1, "R0": 1, "sigma2": 1, "m": 1, "tau": 1, "rounds": 64},
            "0.203125",
            "by hand: 1/64 + 1/8 + 1/16",
        ),
    ),
    note="Recalled, and known up to an absolute constant only.  On quadratics the last term is absent.",
)
