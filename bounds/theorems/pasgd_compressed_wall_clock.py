"""Local-update SGD that also compresses what it averages, at a wall-clock time.

Setting.  That of ``pasgd_compressed``, its times as in ``pasgd_wall_clock``.

Derivation.  As in ``pasgd_wall_clock``: ``pasgd_compressed`` holds for every whole number of rounds and depends on it
by its inverse alone.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .pasgd_compressed import pasgd_compressed

pasgd_compressed_wall_clock = Bound(
    name="pasgd_compressed_wall_clock",
    quantity=(
        "E of the average of |grad F(xbar)|^2 over the local steps of the rounds ended by a time (of 1 at least), "
        "round changes compressed without bias"
    ),
    side=Side.UPPER,
    value=pasgd_compressed.value.subs(K, tau / inverse_rounds),
    assuming=pasgd_compressed.assuming,
    reference=Reference("ratedist", "joint bound of local steps and compression at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_compressed.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 4, "m": 4, "omega": 3, "inverse_rounds": "0.04"},
            "0.40500",
            "25 rounds of 4 steps, by hand: .2 + .025 * 7 + .03",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1K\sum_k\|\nabla F(\bar x_k)\|^2",
)
