"""Local-update SGD that compresses what it averages, on a convex problem, at a wall-clock time.

Setting.  That of ``pasgd_compressed_convex``, its times as in ``pasgd_wall_clock``.

Derivation.  As in ``pasgd_wall_clock``: ``pasgd_compressed_convex`` holds for every whole number of rounds and depends
on it by its inverse alone.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .pasgd_compressed_convex import pasgd_compressed_convex

pasgd_compressed_convex_wall_clock = Bound(
    name="pasgd_compressed_convex_wall_clock",
    quantity=(
        "E of the average of |grad F(xbar)|^2 over the local steps of the rounds ended by a time (of 1 at least), "
        "F convex, round changes compressed without bias"
    ),
    side=Side.UPPER,
    value=pasgd_compressed_convex.value.subs(K, tau / inverse_rounds),
    assuming=pasgd_compressed_convex.assuming,
    reference=Reference("ratedist", "convex form of the joint bound at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_compressed_convex.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.05", "L": 1, "sigma2": 1, "tau": 5, "m": 4, "omega": 3, "inverse_rounds": "0.025"},
            "0.28937500",
            "40 rounds of 5 steps, by hand: .2 + .0125 * 7 + .75 * .0025 * 4 / 4",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1K\sum_k\|\nabla F(\bar x_k)\|^2",
)
