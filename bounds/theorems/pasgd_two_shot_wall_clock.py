"""Local-update SGD that averages in two shots, at a wall-clock time.

Setting.  That of ``pasgd_two_shot``, its times as in ``pasgd_wall_clock``.

Derivation.  As in ``pasgd_wall_clock``: ``pasgd_two_shot`` holds for every whole number of rounds and depends on it by
its inverse alone.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .pasgd_two_shot import pasgd_two_shot

pasgd_two_shot_wall_clock = Bound(
    name="pasgd_two_shot_wall_clock",
    quantity=(
        "E of the average of |grad F(xbar)|^2 over the local steps of the rounds ended by a time (of 1 at least), "
        "round changes averaged in two shots"
    ),
    side=Side.UPPER,
    value=pasgd_two_shot.value.subs(K, tau / inverse_rounds),
    assuming=pasgd_two_shot.assuming,
    reference=Reference("ratedist", "local steps and two unbiased stages at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(pasgd_two_shot.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, Conclusion.GRADIENT),
    examples=(
        Example(
            {
                "gap": 1,
                "eta": "0.1",
                "L": 1,
                "sigma2": 1,
                "tau": 4,
                "m": 4,
                "omega1": 1,
                "omega2": "0.25",
                "inverse_rounds": "0.04",
            },
            "0.330000",
            "25 rounds of 4 steps, by hand: .2 + .1 + .03",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1K\sum_k\|\nabla F(\bar x_k)\|^2",
)
