"""DIANA: compress the difference to a learned shift, so that the noise of compression vanishes.

Setting.  m_i = C_i(grad F_i(x) - h_i), h_i += a m_i, a = 1/(1 + omega), x+ = x - eta mean (h_i + m_i); C_i unbiased of
constant omega, independent; every F_i convex and L-smooth, F mu-strongly convex, kappa = L/mu.  Psi = ``|x - x*|^2 + (4
omega eta^2/(m`` a)) ``mean |h_i - grad F_i(x*)|^2``.

Derivation.  With ``H = mean |h_i - grad F_i(x*)|^2``, delta = F(x) - F*:  the step has ``E|mean (h_i + m_i)|^2 <= 2 L
delta + (omega/m)(4 L delta + 2 H)``, and a (1 + omega) <= 1 gives E H+ <= (1 - a) H + 2 a L delta.  Then ::

    E Psi+ <= (1 - eta mu)|x - x*|^2 + (1 - a/2) (4 omega eta^2/(m a)) H - 2 eta delta (1 - eta L (1 + 6 omega/m)).

With eta = 1/(L (1 + 6 omega/m)), Psi contracts by 1 - min(eta mu, a/2) a step.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, kappa, m, omega

diana = Bound(
    name="diana",
    quantity="steps until the Lyapunov function of DIANA is at most epsilon times its start, strongly convex",
    side=Side.UPPER,
    value=sp.Max(kappa * (1 + 6 * omega / m), 2 * (1 + omega)) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference("horvath2019", "strongly convex case; constants derived here", arxiv="1904.05115"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.DIANA,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_LYAPUNOV,
    ),
    examples=(
        Example({"kappa": 10, "omega": 4, "m": 4, "epsilon": "0.01"}, "322.362", "70 ln(100) by hand"),
        Example({"kappa": 1, "omega": 40, "m": 100, "epsilon": "0.01"}, "377.624", "82 ln(100) by hand"),
    ),
    unit="step",
    latex_name="K",
)
