"""The sharper price of local steps for Hessians >= -rho, at a wall-clock time.

Setting.  That of ``pasgd_smooth_sharp``, its times as in ``pasgd_wall_clock``.

Derivation.  As in ``pasgd_wall_clock``: ``pasgd_smooth_sharp`` holds for every whole number of rounds and depends
on it by its inverse alone.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import K, inverse_rounds, tau
from .pasgd_smooth_sharp import pasgd_smooth_sharp

pasgd_smooth_sharp_wall_clock = Bound(
    name="pasgd_smooth_sharp_wall_clock",
    quantity=(
        "E of the average of |grad F(xbar)|^2 over the local steps of the rounds ended by a time (of 1 at least), "
        "Hessians >= -rho"
    ),
    side=Side.UPPER,
    value=pasgd_smooth_sharp.value.subs(K, tau / inverse_rounds),
    assuming=pasgd_smooth_sharp.assuming,
    reference=Reference("ratedist", "smooth form of wang2018, Theorem 1, at a random number of rounds"),
    status=Status.PROVED,
    setting=Setting(
        pasgd_smooth_sharp.setting.needs | {Property.TIMES_APART, Property.ENDED_ROUNDS}, Conclusion.GRADIENT
    ),
    examples=(
        Example(
            {"gap": 1, "eta": "0.1", "L": 1, "sigma2": 1, "tau": 3, "m": 4, "inverse_rounds": "0.03", "rho": "0.5"},
            "0.229362890625",
            "100 steps: .2 + .025 + .75 * .01 * (9/16) * (0 + 1 + 2.1025) / 3, by hand",
        ),
    ),
    note="the times are independent of the gradients; see bounds.runtime.rounds_by for E 1/N.",
    latex_name=r"E\frac1K\sum_k\|\nabla F(\bar x_k)\|^2",
)
