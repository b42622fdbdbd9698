"""Theorem 1 for any smooth problem, without the condition that couples eta and tau.

Setting.  As in ``pasgd_iterations``, only eta L <= 1, every Hessian >= -rho; rho = L assumes nothing but smoothness.

Derivation.  As in ``pasgd_convex``, but the step x -> x - eta grad F(x) is (1 + eta rho)-Lipschitz.  With q = (1 + eta
rho)^2 = 1 + y, ``E|x^i - x^j|^2`` after r steps is at most 2 eta^2 sigma2 (1 + q + ... + q^(r-1)), so ::

    avg EV <= (1 - 1/m) eta^2 sigma2 (1/tau) sum_{r<tau} (q^r - 1)/(q - 1),

which is the special function MeanGrowth(y, tau), equal to (tau - 1)/2 at rho = 0.
It is below Theorem 1 while 2 MeanGrowth < tau - 1 and remains valid where Theorem 1 does not apply.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.mean_growth import MeanGrowth
from ..symbols import K, L, eta, gap, m, rho, sigma2, tau

pasgd_smooth = Bound(
    name="pasgd_smooth",
    quantity="average over K local steps of E|grad F(xbar)|^2, Hessians >= -rho",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + (1 - 1 / m) * eta**2 * L**2 * sigma2 * MeanGrowth(eta * rho * (2 + eta * rho), tau),
    assuming=(sp.Le(eta * L, 1), sp.Le(rho, L)),
    reference=Reference("ratedist", "smooth form of wang2018, Theorem 1"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.HESSIAN_ABOVE, Property.LOCAL_SGD}, Conclusion.GRADIENT),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": 1},
            "0.233025",
            "by hand: .2 + .025 + .75 * .01 * (0 + 1 + 2.21) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "rho": 0},
            "0.24000",
            "by hand, the convex form",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
