"""DIANA in two shots: differences to learned shifts go up, the compressed mean goes down, and both noises vanish.

Setting. m_i = C1_i(grad F_i(x) - h_i), g = mean (h_i + m_i), h_i += a m_i, a = 1/(1 + omega1), x+ = x - eta C2(g): the
owner of a shard keeps the mean of the h_i on it, and sends C2 of g.  C1_i and C2 are unbiased with constants omega1
and omega2, independent; every F_i convex and L-smooth, F mu-strongly convex, kappa = L/mu.
``Psi = |x - x*|^2 + (4 omega1 (1 + omega2) eta^2/(m a)) mean |h_i - grad F_i(x*)|^2``.

With full gradients this is Artemis (Philippenko & Dieuleveut 2020); the constants are derived here.

Derivation.  C2 needs no memory: g tends to 0 at the minimiser, and so does C2(g).  With ``delta = F(x) - F*`` and
``H = mean |h_i - grad F_i(x*)|^2``:

``E|C2(g)|^2 <= (1 + omega2) E|g|^2 <= (1 + omega2)(2 L delta + (omega1/m)(4 L delta + 2 H))``,

and as in ``diana`` E H+ <= (1 - a) H + 2 a L delta.  Then:

``E Psi+ <= (1 - eta mu)|x - x*|^2 + (1 - a/2)(the part of H in Psi)``
``- 2 eta delta (1 - eta L (1 + omega2)(1 + 6 omega1/m))``.

With eta = 1/(L (1 + omega2)(1 + 6 omega1/m)), Psi contracts by 1 - min(eta mu, a/2) a step.  At omega2 = 0 it is
``diana``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import epsilon, kappa, m, omega1, omega2

two_shot_diana = Bound(
    name="two_shot_diana",
    quantity="steps until the Lyapunov function of DIANA in two shots is at most epsilon times its start",
    side=Side.UPPER,
    value=sp.Max(kappa * (1 + omega2) * (1 + 6 * omega1 / m), 2 * (1 + omega1)) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference(
        "philippenko2020", "memory upwards only, full gradients; constants derived here", arxiv="2006.14591"
    ),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.STRONGLY_CONVEX,
                Property.FULL_GRADIENTS,
                Property.UNBIASED_STAGES,
                Property.INDEPENDENT_MESSAGES,
                Property.TWO_SHOT_DIANA,
                Property.TUNED_STEP,
            }
        ),
        Conclusion.STEPS_TO_LYAPUNOV,
    ),
    examples=(
        Example(
            {"kappa": 10, "omega1": 4, "omega2": "0.5", "m": 4, "epsilon": "0.01"}, "483.543", "105 ln(100) by hand"
        ),
        Example({"kappa": 1, "omega1": 40, "omega2": 1, "m": 100, "epsilon": "0.01"}, "377.624", "82 ln(100) by hand"),
    ),
    unit="step",
    latex_name="K",
)
