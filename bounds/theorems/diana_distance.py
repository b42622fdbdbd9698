"""DIANA from exact first shifts: what its Lyapunov function says about the distance alone.

Setting.  As in ``diana``, and every worker starts with h_i = grad F_i(x_0), whose mean the workers share by one
uncompressed averaging.  The messages of the first step are then C(0) = 0, so that this averaging is the first of the
K rounds and only the other K - 1 send compressed messages.

Derivation.  ``|x - x*|^2`` <= Psi, but at the start Psi is larger than ``|x_0 - x*|^2``: ``diana`` alone says nothing
about their ratio.  With kappa = 1, omega = 9, two workers whose minimisers are at +-1 and shifts that start at 0, the
steps that take Psi to a tenth leave ``E|x - x*|^2`` at 31 times a start of ``|x_0 - x*| = .01``.  From exact shifts,
convexity and smoothness bound each ``|grad F_i(x_0) - grad F_i(x*)|^2`` by 2 L times the Bregman distance of F_i; those
average to ``F(x_0) - F* <= L/2 |x_0 - x*|^2``.  ``So mean |h_i - grad F_i(x*)|^2 <= L^2 |x_0 - x*|^2`` and, at eta =
1/(L (1 + 6 omega/m)) and a = 1/(1 + omega), ::

    Psi_0 <= (1 + 4 omega (1 + omega) m/(m + 6 omega)^2) |x_0 - x*|^2,

at most 1 + m/9 as omega grows.  Psi contracts by 1 - 1/max{kappa (1 + 6 omega/m), 2 (1 + omega)} a step, and K of them
are enough when this to the power K, times that factor, is at most epsilon.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, m, omega
from .diana import diana

_START = 1 + 4 * omega * (1 + omega) * m / (m + 6 * omega) ** 2

diana_distance = Bound(
    name="diana_distance",
    quantity="steps until E|x - x*|^2 <= epsilon |x_0 - x*|^2, DIANA from exact first shifts, strongly convex",
    side=Side.UPPER,
    value=diana.value.subs(epsilon, epsilon / _START),
    assuming=diana.assuming,
    reference=Reference("ratedist", "the distance in the potential of diana, from exact shifts; extends horvath2019"),
    status=Status.PROVED,
    setting=Setting(diana.setting.needs | {Property.EXACT_SHIFTS}, Conclusion.STEPS_TO_DISTANCE),
    examples=(
        Example({"kappa": 10, "omega": 4, "m": 4, "epsilon": "0.01"}, "346.322", "70 ln(100 (1 + 20/49)) by hand"),
        Example({"kappa": 1, "omega": 9, "m": 2, "epsilon": "0.1"}, "70.2595", "28 ln(10 (1 + 45/196)) by hand"),
    ),
    unit="step",
    note="The first step sends uncompressed gradients.",
    latex_name="K",
)
