"""The least error of a mean in two shots of ideal unbiased operators with a given number of bits.

Setting.  As in ``two_shot_split``.

Derivation.  At the minimum of a quotient the quotient of the derivatives is its value: with u of ``two_shot_split``,
(2 M u - M)/(P + 1 - 2 u).  Put x = P - 1 and s = sqrt(1 + x M/a): u - 1 = x/(1 + s) and s^2 - 1 = x M/a give:

``a (1 + s)(1 + s + 2 x)/x^2, a = mean_square/m``.

For independent vectors (M = a) this is M (2 w + w^2) with w = 1/(2^B - 1), both stages having B/2 bits.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion
from ..setting import Setting
from ..symbols import m, mean_square
from .two_shot_split import growth, root, two_shot_split

two_shot_best_error = Bound(
    name="two_shot_best_error",
    quantity="E|result - mean|^2 of two shots, ideal unbiased stages, at the best split of their bits",
    side=Side.TIGHT,
    value=mean_square / m * (1 + root) * (1 + root + 2 * growth) / growth**2,
    assuming=two_shot_split.assuming,
    reference=Reference("ratedist", "least error of two ideal stages"),
    status=Status.PROVED,
    setting=Setting(two_shot_split.setting.needs, Conclusion.MEAN_ERROR),
    examples=(
        Example(
            {"mean_square": 4, "square_of_mean": 1, "m": 4, "stage_bits": 2},
            "0.7777777778",
            "by hand: one bit a stage, w = 1/3, 2 w + w^2 = 7/9",
        ),
        Example(
            {"mean_square": 1, "square_of_mean": 1, "m": 16, "stage_bits": 2},
            "0.21354821952231132203343299",
            "equal vectors: the error at the least point, by mpmath with 40 digits",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
