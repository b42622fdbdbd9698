"""Local SGD on different data at every worker, convex: the bound of Khaled, Mishchenko and Richtarik.

Setting.  Worker i samples g_i(x) with mean grad F_i(x), F the mean of the F_i; every sample function is convex and
L-smooth; sigma2_opt is the mean over workers of ``E|g_i(x*)|^2``, which contains the differences between workers.

Derivation.  Let delta = F(xbar) - F*.  Convexity and smoothness give ::

    -2 mean <grad F_i(x^i), xbar - x*> <= -2 delta + L V.

Split mean g_i(x^i) at xbar (Young, 5 : 5/4) and at x*, where the mean gradients cancel: ``E|mean g_i|^2 <= 5 L^2 V +
(5/4)(4 L delta + 2`` sigma2_opt/m), so for eta L <= 1/4: (3/4) eta sum delta <= R0^2 + (9/4) eta L sum V + (5/2) eta^2
sigma2_opt K/m.

Since ``E|g_i(x^i)|^2`` averages to at most 3 L^2 V + 6 L delta + 3 sigma2_opt, a round has ::

    sum V <= eta^2 tau (tau - 1)/2 (3 L^2 sum V + 6 L sum delta + 3 tau sigma2_opt),

and eta L (tau - 1) <= 1/8 lets both sums on the right be absorbed: 0.52 eta sum delta <= R0^2 + 2.5 (...) + 7.1 (...).
This is below the published statement, constants 4, 20, 16, term by term.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import R0, K, L, eta, m, sigma2_opt, tau

khaled_heterogeneous = Bound(
    name="khaled_heterogeneous",
    quantity="E F(mean over K local steps of xbar) - inf F, convex, different data at every worker",
    side=Side.UPPER,
    value=4 * R0**2 / (eta * K) + 20 * eta * sigma2_opt / m + 16 * eta**2 * L * (tau - 1) ** 2 * sigma2_opt,
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)), sp.Le(eta * L * (tau - 1), sp.Rational(1, 8))),
    reference=Reference("khaled2020", "heterogeneous data, convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.SAMPLES_CONVEX_SMOOTH,
                Property.MINIMISER,
                Property.UNBIASED_GRADIENTS,
                Property.INDEPENDENT_NOISE,
                Property.LOCAL_SGD,
            }
        ),
        Conclusion.GAP_OF_AVERAGE,
    ),
    examples=(
        Example(
            {"R0": 1, "eta": "0.05", "L": 1, "sigma2_opt": 1, "tau": 3, "m": 4, "K": 100},
            "1.21000",
            "by hand: .8 + .25 + .16",
        ),
    ),
    latex_name=r"E F(\hat x_K)-F^*",
)
