"""The error of a mean in two shots, exactly, for operators whose claims are equalities.

Setting and derivation.  ``two_shot_error``, where every inequality is then an equality: for every vector, at every m.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from .two_shot_error import two_shot_error

two_shot_exact_error = Bound(
    name="two_shot_exact_error",
    quantity="E|result - mean|^2, the mean formed in two shots by operators whose claims are equalities",
    side=Side.TIGHT,
    value=two_shot_error.value,
    assuming=two_shot_error.assuming,
    reference=Reference("ratedist", "two unbiased stages have orthogonal errors"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.EXACT_STAGES, Property.INDEPENDENT_MESSAGES, Property.TWO_SHOT_MEAN}),
        Conclusion.MEAN_ERROR,
    ),
    examples=(
        Example(
            {"omega1": 1, "omega2": 1, "mean_square": "0.5", "square_of_mean": "0.25", "m": 2},
            "0.7500",
            "x = (1, 0), both stages keep with probability 1/2: result 0 or 2 (with 1/4), by enumeration",
        ),
    ),
    latex_name=r"E\|\hat x - \bar x\|^2",
)
