"""A unified theory of decentralised SGD, for periodic full averaging and different data: steps to an accuracy.

Derivation.  In ``pasgd_heterogeneous`` make each of the four terms at most epsilon/4: eta is the smallest of
1/(2 L tau) (for the conditions), m epsilon/(4 L sigma2), sqrt(epsilon/(8 tau))/(L sigma) and
sqrt(3 epsilon/32)/(L tau zeta), using (2/3)(2 tau - 1)(tau - 1) <= (4/3) tau^2.  Then K = 8 gap/(eta epsilon), and
1/eta is at most the sum of the four inverses.  The published statement is the same up to an absolute constant.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import NOISE, Setting
from ..symbols import L, epsilon, gap, heterogeneity, m, sigma2, tau

koloskova = Bound(
    name="koloskova",
    quantity="steps until the average of E|grad F(xbar)|^2 is at most epsilon, tuned step size, different data",
    side=Side.UPPER,
    value=L
    * gap
    * (
        32 * sigma2 / (m * epsilon**2)
        + (sp.sqrt(512 * sigma2 * tau) + sp.sqrt(sp.Rational(2048, 3)) * tau * heterogeneity)
        / epsilon ** sp.Rational(3, 2)
        + 16 * tau / epsilon
    ),
    reference=Reference("koloskova2020", "non-convex case, all-reduce; constants derived here", arxiv="2003.10422"),
    status=Status.PROVED,
    setting=Setting(
        NOISE
        | {
            Property.EVERY_SMOOTH,
            Property.BOUNDED_BELOW,
            Property.BOUNDED_HETEROGENEITY,
            Property.LOCAL_SGD,
            Property.TUNED_STEP,
        },
        Conclusion.STEPS_TO_GRADIENT,
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "sigma2": 1, "m": 4, "epsilon": "0.25", "tau": 2, "heterogeneity": 0},
            "512.000",
            "by hand: 128 + 32 * 8 + 128",
        ),
        Example(
            {"L": 1, "gap": 1, "sigma2": 0, "m": 4, "epsilon": 1, "tau": 4, "heterogeneity": "1.7320508075688772935"},
            "245.0193",
            "by hand: sqrt(2048) * 4 + 64 with sqrt(2048) = 45.254834",
        ),
    ),
    unit="step",
    latex_name="K",
)
