"""EF21: error feedback that compresses the change of the gradient and needs no bound on gradients.

Setting.  x+ = x - eta mean g_i, g_i+ = g_i + C_i(grad F_i(x+) - g_i), g_i = grad F_i at the start; contraction alpha;
every F_i L-smooth, full gradients.

Derivation.  With ``e = mean |g_i - grad F_i(x)|^2`` and Young's inequality at 1/sqrt(alpha) - 1, ::

    E e+ <= sqrt(alpha) e + alpha/(1 - sqrt(alpha)) L^2 |x+ - x|^2.

As in ``marina`` add eta/(2 theta) times this, theta = 1 - sqrt(alpha), to the descent lemma; ``|x+ - x|^2`` drops for
eta L = 1/(1 + sqrt(alpha)/(1 - sqrt(alpha))) = 1 - sqrt(alpha).  Sum: avg ``E|grad F|^2 <= 2 gap/(eta K)``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L, alpha, epsilon, gap

ef21 = Bound(
    name="ef21",
    quantity="steps until the average of E|grad F|^2 is at most epsilon, EF21, non-convex",
    side=Side.UPPER,
    value=2 * L * gap * (1 + sp.sqrt(alpha)) / (epsilon * (1 - alpha)),
    reference=Reference("richtarik2021", "Theorem 1", arxiv="2106.05203"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.FULL_GRADIENTS,
                Property.CONTRACTIVE,
                Property.EF21,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_GRADIENT,
    ),
    examples=(
        Example({"L": 1, "gap": "0.5", "epsilon": 1, "alpha": "0.99"}, "199.5", "published check value"),
        Example({"L": 1, "gap": "0.5", "epsilon": 1, "alpha": "0.5"}, "3.41", "published check value, 2 + sqrt(2)"),
    ),
    unit="step",
    latex_name="K",
)
