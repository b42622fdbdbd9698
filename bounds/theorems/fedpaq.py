"""FedPAQ: periodic averaging of quantised differences, with the step size 1/(L sqrt(K))."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..symbols import K, L, gap, m, omega, sigma2, tau

fedpaq = Bound(
    name="fedpaq",
    quantity="average over K local steps of E|grad F(xbar)|^2, eta = 1/(L sqrt(K)), round changes quantised",
    side=Side.UPPER,
    value=2 * L * gap / sp.sqrt(K) + (1 + omega) * sigma2 / (m * sp.sqrt(K)) + sigma2 * (m + 1) / m * (tau - 1) / K,
    reference=Reference("reisizadeh2020", "Theorem 2, non-convex", arxiv="1909.13014"),
    status=Status.RECALLED,
    setting=Setting(
        SAME_DATA | {Property.UNBIASED, Property.INDEPENDENT_MESSAGES, Property.FEDPAQ},
        Conclusion.GRADIENT,
        known_up_to="conditions on K that are not stated here",
    ),
    examples=(
        Example(
            {"L": 1, "gap": 1, "K": 100, "m": 4, "omega": 3, "sigma2": 1, "tau": 5},
            "0.350000",
            "by hand: .2 + .1 + 1.25 * .04",
        ),
    ),
    note="Recalled; its conditions on K are not stated here.  The proved pasgd_compressed has 1 + 2 omega in the place "
    "of 1 + omega: for non-convex F gradients correlate with earlier noise of the same round.",
    latex_name=r"\frac1K\sum_k E\|\nabla F(\bar x_k)\|^2",
)
