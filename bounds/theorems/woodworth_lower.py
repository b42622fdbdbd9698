"""The min-max complexity of distributed stochastic convex optimisation with intermittent communication."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import R0, L, m, rounds, sigma2, tau

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
