"""Local-update SGD that also compresses what it averages, on a convex problem: a quarter of the price of local steps.

Setting.  As in ``pasgd_compressed``, with F convex.

Derivation.  In the notation of ``pasgd_convex_sharp``; compression adds 2 omega eta L sigma2/m + theta avg EG, theta =
2 omega eta L tau/m and ``G = |gbar|^2 + mean |u_i|^2`` (see ``pasgd_compressed``).  Half of what cocoercivity leaves
for the u_i is kept for it: ``|b - gbar|^2 + mean |u_i|^2/2 <= L mean <u_i, d_i> - mean |u_i|^2/2 <= (L^2/2) V``.  Under
the condition theta <= (1 - eta L)/2 <= 1/2, so that the u_i are absorbed here and gbar by (1 - eta L) ``|gbar|^2`` of
the descent lemma.  Insert avg EV of ``pasgd_convex``, which compression does not change: a round starts together.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Property
from ..setting import Setting
from ..symbols import K, L, eta, gap, m, omega, sigma2, tau
from .pasgd_compressed import pasgd_compressed

pasgd_compressed_convex = Bound(
    name="pasgd_compressed_convex",
    quantity="average over K local steps of E|grad F(xbar)|^2, F convex, round changes compressed without bias",
    side=Side.UPPER,
    value=2 * gap / (eta * K)
    + eta * L * sigma2 * (1 + 2 * omega) / m
    + (1 - 1 / m) * eta**2 * L**2 * sigma2 * (tau - 1) / 4,
    assuming=(sp.Le(eta * L + 4 * omega * eta * L * tau / m, 1),),
    reference=Reference("ratedist", "convex form of the joint bound of local steps and unbiased compression"),
    status=Status.PROVED,
    setting=Setting(pasgd_compressed.setting.needs | {Property.CONVEX}, pasgd_compressed.setting.concludes),
    examples=(
        Example(
            {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "K": 200, "omega": 3},
            "0.28937500",
            "by hand: .2 + .0125 * 7 + .75 * .0025 * 4 / 4, at condition .05 + .75 <= 1",
        ),
    ),
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
