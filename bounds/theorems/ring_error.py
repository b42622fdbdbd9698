"""The error of a mean whose partial sums are compressed anew at every hop of a ring.

Setting.  Shard by shard, the first worker sends C1(x_1), the next decodes it, adds x_2, compresses the sum, and so on;
the last worker adds x_m to what it decodes and sends C2 of the sum to all, who divide by m.  The workers take their
places in a uniformly random order.  A worker sends (1 - 1/m)(b1 + b2) bits a coordinate, as in two shots.

Derivation.  Let s_k be the sum of the first k vectors and e_k the mean square error of what its holder has. e_1 = 0;
compressing adds ``omega1 E|held|^2 = omega1 (|s_k|^2 + e_k)``, as what is held is unbiased, so that:

``e_{k+1} <= (1 + omega1) e_k + omega1 |s_k|^2, m^2 E|result - mean|^2 <= (1 + omega2) e_m + omega2 |s_m|^2``.

In a uniformly random order two given workers are both among the first k with probability k (k-1)/(m (m-1)), and sum_{i
!= j} <x_i, x_j> = m^2 square_of_mean - m mean_square, so:

``E|s_k|^2 = k mean_square + k (k-1) (m square_of_mean - mean_square)/(m - 1)``.

The recursion is linear: ``e_m <= omega1 sum_{k<m} (1 + omega1)^(m-1-k) E|s_k|^2``.  The sum over k (1 +
omega1)^(m-1-k) is m MeanGrowth(omega1, m), that over k (k-1) (1 + omega1)^(m-1-k) is SquareGrowth(omega1, m).

For independent vectors and omega1 = omega2 = omega the error over square_of_mean = mean_square/m tends to omega (m +
1)/2 as omega m falls, and grows exponentially in m where omega m is not small.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.mean_growth import MeanGrowth
from ..special.square_growth import SquareGrowth
from ..symbols import m, mean_square, omega1, omega2, square_of_mean

_apart = mean_square * m * MeanGrowth(omega1, m)
_together = (m * square_of_mean - mean_square) / (m - 1) * SquareGrowth(omega1, m)

ring_error = Bound(
    name="ring_error",
    quantity="E|result - mean|^2, partial sums compressed at every hop of a ring in random order",
    side=Side.UPPER,
    value=omega2 * square_of_mean + (1 + omega2) * omega1 / m**2 * (_apart + _together),
    assuming=(sp.Ge(m, 2), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "recursion of the error over the hops, solved"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {Property.UNBIASED_STAGES, Property.INDEPENDENT_MESSAGES, Property.RING_MEAN, Property.RANDOM_PLACES}
        ),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": 3, "square_of_mean": 1, "m": 3},
            "3.6667",
            "by hand, orthogonal vectors of square 3: e_2 = 3, e_3 = 2 * 3 + 6 = 12, (2 * 12 + 9)/9",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
