"""Theorem 1 between convex and merely smooth: one formula for every Hessian >= -rho.

Setting.  As in ``pasgd_smooth``; rho = 0 is convex, rho = L assumes nothing but smoothness.

Derivation.  ``F + rho |x|^2/2`` is convex and (L + rho)-smooth.  The first inequality of ``pasgd_convex_sharp`` for it
speaks of b + rho xbar and gbar + rho xbar, whose difference is that of b and gbar: ``|b - gbar|^2 <= ((L + rho)/2)^2
V``.  The rest is as there, with avg EV of ``pasgd_smooth``; its last term gets the factor ((1 + rho/L)/2)^2, a quarter
at rho = 0 and one at rho = L.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..special.mean_growth import MeanGrowth
from ..symbols import K, L, eta, gap, m, rho, sigma2, tau
from .pasgd_smooth import pasgd_smooth

pasgd_smooth_sharp = Bound(
    name="pasgd_smooth_sharp",
    quantity="average over K local steps of E|grad F(xbar)|^2, Hessians >= -rho",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 / m
    + (1 - 1 / m) * eta**2 * (L + rho) ** 2 * sigma2 * MeanGrowth(eta * rho * (2 + eta * rho), tau) / 4,
    assuming=pasgd_smooth.assuming,
    reference=Reference("ratedist", "smooth form of wang2018, Theorem 1, by cocoercivity of the mean"),
    status=Status.PROVED,
    setting=pasgd_smooth.setting,
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": 1},
            "0.233025",
            "by hand: .2 + .025 + .75 * .01 * (0 + 1 + 2.21) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 100, "rho": "0.5"},
            "0.229362890625",
            "by hand: .2 + .025 + .75 * .01 * (9/16) * (0 + 1 + 2.1025) / 3",
        ),
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 100, "rho": 0},
            "0.22875",
            "by hand, the convex form",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
