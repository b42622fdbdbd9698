"""The error of a mean whose partial sums are compressed anew at every edge of a binary tree.

Setting.  The workers are leaves of a binary tree of depth l = ``tree_depth``, in a uniformly random order; the other
2^l - m leaves are empty.  At every level one of two neighbours sends C1 of its partial sum, the other adds it; the
root sends C2 of the sum to all, who divide by m.

Derivation.  With N = 2^l leaves, ``E|sum of k neighbours|^2 = (a - b) k + b k^2``, a = m mean_square/N, b = (m^2
square_of_mean - m mean_square)/(N (N-1)), as in ``ring_error``.  If e_j is the mean square error of a sum of 2^j
leaves, the receiver's and the sender's errors and the new one are centred and orthogonal:

``e_{j+1} <= e_j + (1 + omega1) e_j + omega1 ((a - b) 2^j + b 4^j), e_0 = 0``,

so that e_l <= omega1 sum_j (2 + omega1)^(l-1-j) ((a - b) 2^j + b 4^j), two geometric sums.  As for the ring:

``m^2 E|result - mean|^2 <= (1 + omega2) e_l + omega2 m^2 square_of_mean``.

For independent vectors, m = 2^l and omega1 = omega2 = omega, the error over square_of_mean is (1 + omega) ((1 +
omega/2)^l - 1) + omega: about (omega/2) log2 m + omega.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.power_quotient import PowerQuotient
from ..symbols import m, mean_square, omega1, omega2, square_of_mean, tree_depth

_N = 2**tree_depth
_together = (m * square_of_mean - mean_square) / (_N - 1)  # times m/N, as is the mean square of a leaf
_error = (mean_square - _together) * PowerQuotient(2 + omega1, 2, tree_depth) + _together * PowerQuotient(
    4, 2 + omega1, tree_depth
)

tree_error = Bound(
    name="tree_error",
    quantity="E|result - mean|^2, partial sums compressed at every edge of a binary tree in random order",
    side=Side.UPPER,
    value=omega2 * square_of_mean + (1 + omega2) * omega1 / (m * _N) * _error,
    assuming=(sp.Lt(m, _N + sp.Rational(1, 2)), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "recursion of the error over the levels, solved"),
    status=Status.PROVED,
    setting=Setting(
        frozenset(
            {Property.UNBIASED_STAGES, Property.INDEPENDENT_MESSAGES, Property.TREE_MEAN, Property.RANDOM_PLACES}
        ),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": 4, "square_of_mean": 1, "m": 4, "tree_depth": 2},
            "3.5000",
            "by hand, orthogonal vectors: e_1 = 4, e_2 = 4 + 8 + 8 = 20, (2 * 20 + 16)/16",
        ),
        Example(
            {"omega1": 2, "omega2": 0, "mean_square": 1, "square_of_mean": 1, "m": 4, "tree_depth": 2},
            "1.0000",
            "by hand, equal vectors, where two growth factors coincide: e_1 = 2, e_2 = 2 + 6 + 8 = 16, 16/16",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
