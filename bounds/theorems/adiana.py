"""Accelerated DIANA: the optimal dependence on the condition number with independent unbiased compressors."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, kappa, m, omega

adiana = Bound(
    name="adiana",
    quantity="steps to relative accuracy epsilon, accelerated DIANA, strongly convex, up to a constant",
    side=Side.UPPER,
    value=(omega + (1 + omega / sp.sqrt(m)) * sp.sqrt(kappa)) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference("he2023", "refined rate of the method of Li et al. 2020", arxiv="2305.16297"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.ADIANA,
            }
        ),
        Conclusion.STEPS_TO_LYAPUNOV,
        known_up_to="an absolute constant factor",
    ),
    examples=(Example({"kappa": 16, "omega": 4, "m": 4, "epsilon": "0.01"}, "73.6827", "16 ln(100) by hand"),),
    unit="step",
    note="Recalled, and known up to an absolute constant only.",
    latex_name="K",
)
