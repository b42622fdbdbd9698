"""How many of its bits a mean in two shots should spend on the first shot.

Setting.  Stage k has omega_k = 1/(4^(b_k) - 1), the rate of an ideal unbiased operator; b1 + b2 = ``stage_bits`` = B
is given, b1, b2 >= 0 are real.  The error is that of ``two_shot_exact_error``.

Derivation.  With u = 4^b1, P = 4^B and a = mean_square/m, M = square_of_mean, the error is:

``a/(u - 1) + M/(P/u - 1) + a/((u - 1)(P/u - 1)) = (a P + M u^2 - M u)/((u - 1)(P - u))``.

Its derivative vanishes where M u^2 - 2 (M - a) u + M - a (P + 1) = 0 (the factor P divides out); the root in (1, P)
is:

``u = 1 + (P - 1)/(1 + sqrt(1 + (P - 1) M/a))``,

and the error is infinite at both ends, so this is the minimum.  As B grows b2 - b1 tends to log2(M/a)/2: 0 for
independent vectors (for which b1 = b2 = B/2 at every B), log2(m)/2 for equal ones.  At few bits this difference is
smaller than its limit, which may even exceed B.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..special.one_minus_power_of_two import OneMinusPowerOfTwo
from ..symbols import m, mean_square, square_of_mean, stage_bits

growth = 4**stage_bits * OneMinusPowerOfTwo(2 * stage_bits)  # 4^B - 1
root = sp.sqrt(1 + growth * m * square_of_mean / mean_square)

two_shot_split = Bound(
    name="two_shot_split",
    quantity="bits a coordinate of the first of two ideal unbiased stages at which their error is least",
    side=Side.TIGHT,
    value=Log2OnePlus(growth / (1 + root)) / 2,
    assuming=(sp.Gt(mean_square, 0), sp.Le(square_of_mean, mean_square)),
    reference=Reference("ratedist", "least error of two ideal stages"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.IDEAL_STAGES, Property.INDEPENDENT_MESSAGES, Property.TWO_SHOT_MEAN, Property.BEST_SPLIT}),
        Conclusion.FIRST_STAGE_BITS,
    ),
    examples=(
        Example(
            {"mean_square": 64, "square_of_mean": 1, "m": 64, "stage_bits": 5}, "2.500000", "independent: half, by hand"
        ),
        Example(
            {"mean_square": 1, "square_of_mean": 1, "m": 16, "stage_bits": 2},
            "0.46594019172964162067829820",
            "equal vectors: a root of the derivative of the error, by mpmath with 40 digits",
        ),
    ),
    unit="bit",
    latex_name="b_1",
)
