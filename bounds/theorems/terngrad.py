"""TernGrad under its max-norm assumption: linear convergence to a ball.

Setting.  x+ = x - eta mean T(g_i), ``T(g)_j = |g|_inf sign(g_j)`` ``Bernoulli(|g_j|/|g|_inf)``; <grad F(x), ``x - x*>
>= mu |x - x*|^2``; for every local gradient ``E[|g|_inf |g|_1]`` <= A + ``B |x - x*|^2`` (``max_norm_floor``,
``max_norm_growth``), the assumption of the original analysis, which states convergence without a rate.

Derivation.  T is unbiased and ``E|T(g)|^2 = |g|_inf |g|_1`` exactly, so ::

    E|x+ - x*|^2 <= (1 - 2 eta mu + eta^2 B)|x - x*|^2 + eta^2 A;

unroll and sum the geometric series.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.fused_difference import FusedDifference
from ..special.geometric_decay import GeometricDecay
from ..symbols import R0, K, eta, max_norm_floor, max_norm_growth, mu

_pull = FusedDifference(2 * mu, eta, max_norm_growth)  # a step multiplies by 1 - eta _pull

terngrad = Bound(
    name="terngrad",
    quantity="E|x - x*|^2 after K steps of TernGrad",
    side=Side.UPPER,
    value=GeometricDecay(eta, _pull, K) * R0**2 + eta * max_norm_floor / _pull,
    assuming=(sp.Lt(eta * max_norm_growth, 2 * mu), sp.Ge(max_norm_growth, mu**2)),
    reference=Reference("wen2017", "Assumption 3 and Theorem 1; the rate is derived here", arxiv="1705.07878"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {
                Property.ONE_POINT_CONVEX,
                Property.UNBIASED_GRADIENTS,
                Property.MAX_NORM_MOMENT,
                Property.TERNARY_GRADIENTS,
            }
        ),
        Conclusion.DISTANCE,
    ),
    examples=(
        Example(
            {"R0": 2, "eta": "0.1", "K": 2, "mu": 1, "max_norm_floor": 3, "max_norm_growth": 4},
            "3.009900",
            "by hand: .84^2 * 4 + .3/1.6",
        ),
    ),
    latex_name=r"E\|x_K-x^*\|^2",
)
