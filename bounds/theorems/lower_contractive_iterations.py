"""Lower bound on the steps of any algorithm with contractive compression of constant alpha, non-convex stochastic."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L, alpha, epsilon, gap, m, sigma2

lower_contractive_iterations = Bound(
    name="lower_contractive_iterations",
    quantity="steps until E|grad F|^2 <= epsilon with contractive compression, worst non-convex problem, up to a "
    "constant",
    side=Side.LOWER,
    value=L * gap * sigma2 / (m * epsilon**2) + L * gap / ((1 - alpha) * epsilon),
    assuming=(sp.Le(epsilon, L * gap),),
    reference=Reference("huang2022", "Theorem 2", arxiv="2206.03665"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.HARDEST_SMOOTH, Property.HARDEST_CONTRACTIVE, Property.ONLY_COMPRESSED}),
        Conclusion.STEPS_TO_GRADIENT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "sigma2": 4, "m": 4, "epsilon": "0.5", "alpha": "0.75"}, "12.0000", "by hand: 4 + 8"
        ),
    ),
    unit="step",
    note="Recalled, and known up to an absolute constant only.  No step is needed for epsilon >= 2 L gap.",
    latex_name="K",
)
