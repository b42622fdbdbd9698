"""The error of a mean of integers that share one scale and are summed on the way, modulo 2^k.

Setting.  All workers know a number ``A >= |sum of the x_i|`` in every coordinate; k = ``word_bits``, h = A/(2^(k-1) -
m).  Worker i rounds every coordinate of x_i/h to one of the two integers around it, at random and without bias; the
words of k bits are summed modulo 2^k on any route and the sum is multiplied by h/m.  ``peak_ratio`` is A/m over the
root mean square of a coordinate of xbar, so that A^2 d = peak_ratio^2 m^2 square_of_mean.

Derivation.  Each integer is less than 1 away from x_i/h, so their sum is less than A/h + m = 2^(k-1) in size: the word
holds it, and nothing wraps.  One rounding has variance f (1 - f) h^2 <= h^2/4, with f the fractional part; they are
independent over workers, so that ``E|result - xbar|^2 <= d h^2/(4 m)``.  With subtractive dither it is d h^2/(12 m).

The sum needs the words of the sum: for independent vectors, log2(m)/2 bits more than a summand whose error is as
large, and the peak of the sum instead of its entropy; see ``shared_scale_rate`` for what a coder can save.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m, peak_ratio, square_of_mean, word_bits

_room = 2 ** (word_bits - 1) - m

shared_scale_error = Bound(
    name="shared_scale_error",
    quantity="E|result - mean|^2, integers of one scale summed modulo 2^word_bits",
    side=Side.UPPER,
    value=peak_ratio**2 * m * square_of_mean / (4 * _room**2),
    assuming=(sp.Gt(_room, sp.Rational(1, 2)),),
    reference=Reference("ratedist", "unbiased rounding to one grid"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.SHARED_SCALE, Property.INDEPENDENT_MESSAGES, Property.WORD_MEAN}), Conclusion.MEAN_ERROR
    ),
    examples=(
        Example(
            {"peak_ratio": 4, "m": 8, "square_of_mean": 3, "word_bits": 8},
            "0.00666667",
            "by hand: 16 * 8 * 3/(4 * 120^2)",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
