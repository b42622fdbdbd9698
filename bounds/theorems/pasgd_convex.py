"""Theorem 1 for convex problems: half the price of local steps, and no condition that couples eta and tau.

Setting.  As in ``pasgd_iterations``, with F convex and only eta L <= 1.

Derivation.  Step (a) of ``pasgd_iterations`` with eta L <= 1 leaves ::

    avg E|grad F(xbar)|^2 <= 2 gap/(eta K) + eta L sigma2/m + L^2 avg EV.

The step x -> x - eta grad F(x) of a convex L-smooth F is non-expansive for eta L <= 2, so ``E|x^i - x^j|^2`` grows by
at most 2 eta^2 sigma2 a step, and ``EV_r = 1/(2 m^2) sum_ij E|x^i - x^j|^2 <= (1 - 1/m) eta^2 sigma2 r``.  Averaged
over r < tau the last term is (1/2)(1 - 1/m) eta^2 L^2 sigma2 (tau - 1).
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, eta, gap, m, sigma2, tau

pasgd_convex = Bound(
    name="pasgd_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex",
    side=Side.UPPER,
    value=2 * gap / (eta * K) + eta * L * sigma2 / m + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 2,
    assuming=(sp.Le(eta * L, 1),),
    reference=Reference("ratedist", "convex form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.CONVEX, Property.LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100},
            "0.24000",
            "by hand: .2 + .025 + .75 * .01 * 4 / 2",
        ),
        Example(
            {"gap": "1.24091", "eta": "0.05", "L": 1, "sigma2": 4, "tau": 16, "m": 16, "K": 4000},
            "0.09522",
            "published check value on the reference quadratic",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
