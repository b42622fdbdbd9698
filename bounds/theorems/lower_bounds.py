"""Lower bounds on steps and bits of whole classes of methods."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import FusedDifference, Log2OnePlus
from ..symbols import R0, L, alpha, d, epsilon, gap, m, omega, rounds, sigma2, tau

woodworth_lower = Bound(
    name="woodworth_lower",
    quantity="E F - inf F of any method with tau gradients a round, convex, homogeneous, up to a constant",
    side=Side.LOWER,
    value=L * R0**2 / (tau * rounds) ** 2
    + sp.Min(L * R0**2, sp.sqrt(sigma2) * R0 / sp.sqrt(m * tau * rounds))
    + sp.Min(L * R0**2 / (rounds**2 * sp.log(m) ** 2), sp.sqrt(sigma2) * R0 / sp.sqrt(tau * rounds)),
    assuming=(sp.Ge(m, 2),),
    reference=Reference("woodworth2021", "homogeneous convex case", arxiv="2102.01583"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.HARDEST_CONVEX, Property.ANY_INTERMITTENT}),
        Conclusion.GAP_OF_OUTPUT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example(
            {"L": 1, "R0": 1, "sigma2": 1, "m": 4, "tau": 1, "rounds": 4},
            "0.34502",
            "by hand: 1/16 + 1/4 + 1/(16 ln(4)^2) with ln(4)^2 = 1.921812",
        ),
    ),
    note="Recalled, and known up to an absolute constant only.  Local SGD does not reach it; accelerated methods do.",
)
"""The min-max complexity of distributed stochastic convex optimisation with intermittent communication."""

lower_unbiased_iterations = Bound(
    name="lower_unbiased_iterations",
    quantity="steps until E|grad F|^2 <= epsilon with unbiased compression, worst non-convex problem, up to a constant",
    side=Side.LOWER,
    value=L * gap * sigma2 / (m * epsilon**2) + (1 + omega) * L * gap / epsilon,
    assuming=(sp.Le(epsilon, L * gap),),
    reference=Reference("huang2022", "Theorem 1", arxiv="2206.03665"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.HARDEST_SMOOTH, Property.HARDEST_UNBIASED, Property.ONLY_COMPRESSED}),
        Conclusion.STEPS_TO_GRADIENT,
        known_up_to="an absolute constant factor",
    ),
    examples=(
        Example({"L": 1, "gap": 1, "sigma2": 4, "m": 4, "epsilon": "0.5", "omega": 3}, "12.0000", "by hand: 4 + 8"),
    ),
    unit="step",
    note="Recalled, and known up to an absolute constant only.  No step is needed for epsilon >= 2 L gap.  "
    "It allows compressors that depend on each other; independent ones can do better (see marina).",
    latex_name="K",
)
"""Lower bound on the steps of any algorithm with unbiased compression of constant omega, non-convex stochastic."""

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
"""Lower bound on the steps of any algorithm with contractive compression of constant alpha, non-convex stochastic."""

lower_total_bits = Bound(
    name="lower_total_bits",
    quantity="bits exchanged by all workers until F - inf F <= epsilon on the unit cube, up to a constant",
    side=Side.LOWER,
    value=m * d * Log2OnePlus(FusedDifference(d, m, epsilon) / (m * epsilon)),
    assuming=(sp.Gt(d, m * epsilon),),
    reference=Reference("korhonen2021", "randomised protocols", arxiv="2010.08222"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.QUADRATIC_SUM}), Conclusion.ALL_WORKERS_BITS, known_up_to="an absolute constant factor"
    ),
    examples=(Example({"m": 4, "d": 1024, "epsilon": "0.25"}, "40960.0", "by hand: 4 * 1024 * log2(1024)"),),
    unit="bit",
    note="Recalled, and known up to an absolute constant only.",
)
"""Lower bound on the total number of bits that m workers must exchange to minimise a sum of quadratics."""
