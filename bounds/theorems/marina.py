"""MARINA: compress the difference of consecutive gradients, with a full gradient now and then.

Setting.  x+ = x - eta g; with probability p g+ = grad F(x+), otherwise g+ = g + mean C_i(grad F_i(x+) - grad F_i(x));
g_1 = grad F(x_1); C_i unbiased of constant omega, independent; every F_i L-smooth; p is ``sync_probability``.

Derivation.  The error ``e = |g - grad F(x)|^2`` obeys ``E e+ <= (1 - p)(e + (omega/m) L^2 |x+ - x|^2)``.  The descent
lemma in the form ``F(x+) <= F(x) - eta/2 |grad F|^2 - (1/(2 eta) - L/2)|x+ - x|^2 + eta/2 e``, plus eta/(2p) times the
first, lets ``|x+ - x|^2`` drop when eta L + eta^2 L^2 (1 - p) omega/(p m) <= 1, in particular for eta L = 1/(1 +
sqrt((1 - p) omega/(p m))).  Sum: avg ``E|grad F|^2 <= 2 gap/(eta K)``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L, epsilon, gap, m, omega
from ..symbols import sync_probability as p

marina = Bound(
    name="marina",
    quantity="steps until the average of E|grad F|^2 is at most epsilon, MARINA, non-convex",
    side=Side.UPPER,
    value=2 * L * gap / epsilon * (1 + sp.sqrt((1 - p) * omega / (p * m))),
    reference=Reference("gorbunov2021", "Theorem 2.1", arxiv="2102.07845"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_SMOOTH,
                Property.BOUNDED_BELOW,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.MARINA,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_GRADIENT,
    ),
    examples=(
        Example(
            {"L": 1, "gap": 2, "epsilon": "0.1", "omega": 12, "m": 9, "sync_probability": "0.25"},
            "120.000",
            "by hand: 40 (1 + 2)",
        ),
    ),
    unit="step",
    latex_name="K",
)
