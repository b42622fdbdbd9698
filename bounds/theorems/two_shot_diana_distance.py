"""DIANA in two shots from exact first shifts: what its Lyapunov function says about the distance alone.

Setting.  As in ``two_shot_diana``, and every worker starts with h_i = grad F_i(x_0), whose mean the owners receive by
one uncompressed averaging, the first of the K rounds.

Derivation.  As in ``diana_distance``: ``mean |h_i - grad F_i(x*)|^2 <= L^2 |x_0 - x*|^2``, so that at eta = 1/(L (1 +
omega2)(1 + 6 omega1/m)) and a = 1/(1 + omega1):

``Psi_0 <= (1 + 4 omega1 (1 + omega1) m/((1 + omega2)(m + 6 omega1)^2)) |x_0 - x*|^2``."""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, m, omega1, omega2
from .two_shot_diana import two_shot_diana

_start = 1 + 4 * omega1 * (1 + omega1) * m / ((1 + omega2) * (m + 6 * omega1) ** 2)

two_shot_diana_distance = Bound(
    name="two_shot_diana_distance",
    quantity="steps until E|x - x*|^2 <= epsilon |x_0 - x*|^2, DIANA in two shots from exact first shifts",
    side=Side.UPPER,
    value=two_shot_diana.value.subs(epsilon, epsilon / _start),
    assuming=two_shot_diana.assuming,
    reference=Reference(
        "ratedist", "the distance in the potential of two_shot_diana, from exact shifts; extends philippenko2020"
    ),
    status=Status.PROVED,
    setting=Setting(two_shot_diana.setting.needs | {Property.EXACT_SHIFTS}, Conclusion.STEPS_TO_DISTANCE),
    examples=(
        Example(
            {"kappa": 10, "omega1": 4, "omega2": "0.5", "m": 4, "epsilon": "0.01"},
            "508.814",
            "105 ln(100 (1 + 40/147)) by hand",
        ),
    ),
    unit="step",
    note="The first step sends uncompressed gradients.",
    latex_name="K",
)
