"""Local-update SGD that also compresses what it averages, in seconds.

D is the time of one averaging ``*with*`` compression: latency plus message length over bandwidth plus the time to
encode and decode, so that D falls while omega grows.

Derivation.  The inequality of ``pasgd_compressed`` holds round by round, given what came before, and rounds are summed
up to the first averaging at or after T as in ``pasgd_runtime``.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, delay_s, step_s, tau, time_s
from .pasgd_compressed import pasgd_compressed

pasgd_compressed_runtime = Bound(
    name="pasgd_compressed_runtime",
    quantity=(
        "E sum |grad F(xbar)|^2 / E number of local steps, up to the first averaging at or after time_s, "
        "round changes compressed without bias"
    ),
    side=Side.UPPER,
    value=pasgd_compressed.value.subs(K, time_s / (step_s + delay_s / tau)),
    assuming=pasgd_compressed.assuming,
    reference=Reference("ratedist", "joint bound of local steps and unbiased compression; extends wang2018"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_compressed.setting.needs | {Property.FRESH_ROUND_TIMES, Property.LAST_ROUND_FINISHED},
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
                "omega": 3,
                "time_s": 150,
                "step_s": 1,
                "delay_s": 2,
            },
            "0.40500",
            "150 s at 1.5 s per step are the 100 steps of .2 + .175 + .03, by hand",
        ),
    ),
    note="the round under way at time_s is finished and counts; otherwise pasgd_compressed_wall_clock.",
    latex_name=r"\frac{E\sum_k\|\nabla F(\bar x_k)\|^2}{E K}",
)
