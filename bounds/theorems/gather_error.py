"""The error of a mean whose summands are compressed and sent to all.

Setting.  Worker i sends C(x_i) to all, independently of the others; everybody takes the mean of what it decodes.
``mean_square`` is the mean over the workers of ``|x_i|^2``.  A worker sends (m - 1) b bits a coordinate.

Derivation.  The errors C(x_i) - x_i are centred and independent, so that the mean of them has
``E|.|^2 = (1/m^2) sum E|C(x_i) - x_i|^2 <= (omega/m^2) sum |x_i|^2``; with equality where the claim is one.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m, mean_square, omega

gather_error = Bound(
    name="gather_error",
    quantity="E|mean of the decoded vectors - mean|^2, compressed vectors gathered",
    side=Side.UPPER,
    value=omega * mean_square / m,
    reference=Reference("ratedist", "errors of independent unbiased messages add"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNBIASED, Property.INDEPENDENT_MESSAGES, Property.GATHERED_MEAN}), Conclusion.MEAN_ERROR
    ),
    examples=(Example({"omega": 3, "mean_square": 10, "m": 4}, "7.5000", "by hand: 3 * 10/4"),),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
