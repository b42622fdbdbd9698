"""Compressed gradient descent when all gradients vanish at the minimiser: how many steps a compressor costs.

Derivation.  In ``dcgd`` with grad F_i(x*) = 0, ``mean |grad F_i|^2 <= 2 L delta`` without the factor 2, so eta = 1/(L
(1 + omega/m)) contracts ``|x - x*|^2`` by 1 - eta mu <= exp(-eta mu) a step.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, kappa, m, omega

dcgd_iterations = Bound(
    name="dcgd_iterations",
    quantity="steps until E|x - x*|^2 <= epsilon |x_1 - x*|^2, compressed gradient descent, interpolation",
    side=Side.UPPER,
    value=kappa * (1 + omega / m) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference("gorbunov2020", "compressed gradient descent, interpolation", arxiv="1905.11261"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.INTERPOLATION,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.COMPRESSED_GRADIENTS,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_DISTANCE,
    ),
    examples=(
        Example(
            {"kappa": 10, "omega": 4, "m": 4, "epsilon": "0.01"}, "92.1034", "20 ln(100), ln(10) = 2.302585 by hand"
        ),
    ),
    unit="step",
    latex_name="K",
)
