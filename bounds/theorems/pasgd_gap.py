"""Local-update SGD on a convex problem, measured by the function value instead of the gradient.

Setting.  As in ``pasgd_convex``; ``R0 = |x_1 - x*|`` for a minimiser x*.

Derivation.  Let g_i = grad F(x^i).  Convexity with smoothness, F* >= F(x^i) + ``<g_i, x* - x^i> + |g_i|^2/(2L)``, and
smoothness, F(xbar) <= F(x^i) + ``<g_i, xbar - x^i> + L/2 |xbar - x^i|^2``, add up to ::

    -2 <g_i, xbar - x*> <= -2 (F(xbar) - F*) + L |x^i - xbar|^2 - |g_i|^2/L.

``In E|xbar+ - x*|^2 = |xbar - x*|^2 - 2 eta mean <g_i, xbar - x*> + eta^2 |mean g_i|^2 + eta^2 sigma2/m the last`` of
these absorbs ``eta^2 |mean g_i|^2`` when eta L <= 1.  Sum, and insert avg EV of ``pasgd_convex``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import R0, K, L, eta, m, sigma2, tau

pasgd_gap = Bound(
    name="pasgd_gap",
    quantity="average over K local steps of E F(xbar) - inf F, F convex",
    side=Side.UPPER,
    value=R0**2 / (2 * eta * K) + eta * sigma2 / (2 * m) + (1 - 1 / m) * eta**2 * L * sigma2 * (tau - 1) / 4,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "function-value form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.MINIMISER, Property.LOCAL_SGD}, Conclusion.GAP),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.22000",
            "by hand: .2 + .0125 + .75 * .01",
        ),
    ),
    latex_name=r"\frac1K\sum_k E F(\bar x_k)-F^*",
)
