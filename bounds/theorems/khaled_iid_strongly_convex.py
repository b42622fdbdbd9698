"""Local SGD on identical data, strongly convex: linear convergence to a ball that grows with tau.

Setting.  As in ``khaled_iid``, F mu-strongly convex.

Derivation.  The one-step inequality proved in ``stich``, without its function value, is ::

    E|xbar+ - x*|^2 <= (1 - eta mu)|xbar - x*|^2 + eta^2 sigma2/m + 2 eta L V;

EV <= eta^2 sigma2 (tau - 1) by ``pasgd_convex``.  Unroll and sum the geometric series.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import SAME_DATA, Setting
from ..special.geometric_decay import GeometricDecay
from ..symbols import R0, K, L, eta, m, mu, sigma2, tau

khaled_iid_strongly_convex = Bound(
    name="khaled_iid_strongly_convex",
    quantity="E|xbar - x*|^2 after K local steps, F strongly convex, identical data",
    side=Side.UPPER,
    value=GeometricDecay(eta, mu, K) * R0**2 + eta * sigma2 / (mu * m) + 2 * L * eta**2 * (tau - 1) * sigma2 / mu,
    assuming=(sp.Le(eta * L, sp.Rational(1, 4)), sp.Le(mu, L)),
    reference=Reference("khaled2020", "identical data, strongly convex", arxiv="1909.04746"),
    status=Status.PROVED,
    setting=Setting(SAME_DATA | {Property.STRONGLY_CONVEX, Property.LOCAL_SGD}, Conclusion.DISTANCE),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "L": 1, "mu": 1, "sigma2": 1, "tau": 3, "m": 4, "K": 2},
            "3.30500",
            "by hand: .81 * 4 + .025 + .04",
        ),
    ),
    latex_name=r"E\|\bar x_K-x^*\|^2",
)
