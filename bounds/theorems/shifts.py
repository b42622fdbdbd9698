"""Unbiased compression of differences from a shift that is learned: no floor is left."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import L, epsilon, gap, kappa, m, omega, omega1, omega2
from ..symbols import sync_probability as p

diana = Bound(
    name="diana",
    quantity="steps until the Lyapunov function of DIANA is at most epsilon times its start, strongly convex",
    side=Side.UPPER,
    value=sp.Max(kappa * (1 + 6 * omega / m), 2 * (1 + omega)) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference(
        "horvath2019", "method of mishchenko2019, strongly convex; constants derived here", arxiv="1904.05115"
    ),
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
"""DIANA: compress the difference to a learned shift, so that the noise of compression vanishes.

Setting.  m_i = C_i(grad F_i(x) - h_i), h_i += a m_i, a = 1/(1 + omega), x+ = x - eta mean (h_i + m_i); C_i unbiased of
constant omega, independent; every F_i convex and L-smooth, F mu-strongly convex, kappa = L/mu.  Psi = ``|x - x*|^2 + (4
omega eta^2/(m`` a)) ``mean |h_i - grad F_i(x*)|^2``.

Derivation.  With ``H = mean |h_i - grad F_i(x*)|^2``, delta = F(x) - F*:  the step has ``E|mean (h_i + m_i)|^2 <= 2 L
delta + (omega/m)(4 L delta + 2 H)``, and a (1 + omega) <= 1 gives E H+ <= (1 - a) H + 2 a L delta.  Then ::

    E Psi+ <= (1 - eta mu)|x - x*|^2 + (1 - a/2) (4 omega eta^2/(m a)) H - 2 eta delta (1 - eta L (1 + 6 omega/m)).

With eta = 1/(L (1 + 6 omega/m)), Psi contracts by 1 - min(eta mu, a/2) a step.
"""

_diana_start = 1 + 4 * omega * (1 + omega) * m / (m + 6 * omega) ** 2

diana_distance = Bound(
    name="diana_distance",
    quantity="steps until E|x - x*|^2 <= epsilon |x_0 - x*|^2, DIANA from exact first shifts, strongly convex",
    side=Side.UPPER,
    value=diana.value.subs(epsilon, epsilon / _diana_start),
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

_two_shot_start = 1 + 4 * omega1 * (1 + omega1) * m / ((1 + omega2) * (m + 6 * omega1) ** 2)

two_shot_diana_distance = Bound(
    name="two_shot_diana_distance",
    quantity="steps until E|x - x*|^2 <= epsilon |x_0 - x*|^2, DIANA in two shots from exact first shifts",
    side=Side.UPPER,
    value=two_shot_diana.value.subs(epsilon, epsilon / _two_shot_start),
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
"""DIANA in two shots from exact first shifts: what its Lyapunov function says about the distance alone.

Setting.  As in ``two_shot_diana``, and every worker starts with h_i = grad F_i(x_0), whose mean the owners receive by
one uncompressed averaging, the first of the K rounds.

Derivation.  As in ``diana_distance``: ``mean |h_i - grad F_i(x*)|^2 <= L^2 |x_0 - x*|^2``, so that at eta = 1/(L (1 +
omega2)(1 + 6 omega1/m)) and a = 1/(1 + omega1):

``Psi_0 <= (1 + 4 omega1 (1 + omega1) m/((1 + omega2)(m + 6 omega1)^2)) |x_0 - x*|^2``."""

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
"""MARINA: compress the difference of consecutive gradients, with a full gradient now and then.

Setting.  x+ = x - eta g; with probability p g+ = grad F(x+), otherwise g+ = g + mean C_i(grad F_i(x+) - grad F_i(x));
g_1 = grad F(x_1); C_i unbiased of constant omega, independent; every F_i L-smooth; p is ``sync_probability``.

Derivation.  The error ``e = |g - grad F(x)|^2`` obeys ``E e+ <= (1 - p)(e + (omega/m) L^2 |x+ - x|^2)``.  The descent
lemma in the form ``F(x+) <= F(x) - eta/2 |grad F|^2 - (1/(2 eta) - L/2)|x+ - x|^2 + eta/2 e``, plus eta/(2p) times the
first, lets ``|x+ - x|^2`` drop when eta L + eta^2 L^2 (1 - p) omega/(p m) <= 1, in particular for eta L = 1/(1 +
sqrt((1 - p) omega/(p m))).  Sum: avg ``E|grad F|^2 <= 2 gap/(eta K)``.
"""

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
"""Accelerated DIANA: the optimal dependence on the condition number with independent unbiased compressors."""

locodl = Bound(
    name="locodl",
    quantity="steps until the Lyapunov function of LoCoDL is at most epsilon times its start, up to a constant",
    side=Side.UPPER,
    value=(kappa + (1 + omega) / p**2) * sp.log(1 / epsilon),
    assuming=(sp.Lt(epsilon, 1),),
    reference=Reference("condat2024", "strongly convex, one pair of constants", arxiv="2403.04348"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset(
            {
                Property.EVERY_STRONGLY_CONVEX,
                Property.EVERY_SMOOTH,
                Property.FULL_GRADIENTS,
                Property.UNBIASED,
                Property.INDEPENDENT_MESSAGES,
                Property.LOCODL,
            }
        ),
        Conclusion.STEPS_TO_LYAPUNOV,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"kappa": 100, "omega": 3, "sync_probability": "0.2", "epsilon": "0.01"},
            "921.0340372",
            "by hand: 200 ln(100), as many steps for the condition as for the exchanges",
        ),
    ),
    unit="step",
    note="Recalled, and known up to an absolute constant only.",
    latex_name="K",
)
"""LoCoDL: local steps and unbiased compression together, doubly accelerated in the number of exchanges.

Recalled: exchanges happen with probability p at a step, and at p = sqrt((1 + omega)/kappa) they number
2 sqrt(kappa (1 + omega)) log(1/epsilon) up to a constant.  Without compression it has the rate of ``proxskip``.
"""
