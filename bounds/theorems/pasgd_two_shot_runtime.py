"""Local-update SGD that averages in two shots, in seconds.

D is the time of one averaging in two shots: latencies, both stages' messages over bandwidth, and the time to encode
and decode (see ``bounds.runtime``).

Derivation.  The inequality of ``pasgd_two_shot`` holds round by round, given what came before, and rounds are summed
up to the first averaging at or after T as in ``pasgd_runtime``.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, delay_s, step_s, tau, time_s
from .pasgd_two_shot import pasgd_two_shot

pasgd_two_shot_runtime = Bound(
    name="pasgd_two_shot_runtime",
    quantity=(
        "E sum |grad F(xbar)|^2 / E number of local steps, up to the first averaging at or after time_s, "
        "round changes averaged in two shots"
    ),
    side=Side.UPPER,
    value=pasgd_two_shot.value.subs(K, time_s / (step_s + delay_s / tau)),
    assuming=pasgd_two_shot.assuming,
    reference=Reference("ratedist", "local steps and two unbiased stages; extends wang2018"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_two_shot.setting.needs | {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED},
        Conclusion.GRADIENT_PER_MEAN_STEP,
    ),
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
                "time_s": 150,
                "step_s": 1,
                "delay_s": 2,
            },
            "0.330000",
            "150 s at 1.5 s per step are the 100 steps of .2 + .1 + .03, by hand",
        ),
    ),
    note="the round under way at time_s is finished and counts; otherwise pasgd_two_shot_wall_clock.",
    latex_name=r"\frac{E\sum_k\|\nabla F(\bar x_k)\|^2}{E K}",
)
