"""RaBitQ's inner products at one bit: the worst query, exactly.

Derivation.  As ``rabitq_inner_product``: the error y - x is orthogonal to x and uniform in its directions, so a query
with the part q' orthogonal to x has ``E<q, y - x>^2 = |q'|^2 E|y - x|^2/(d - 1)``: the largest value, d/(d-1) times the
average, at every q orthogonal to x, and none at q = x.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.inverse_square_of_l1 import InverseSquareOfL1
from ..symbols import d

rabitq_inner_product_worst = Bound(
    name="rabitq_inner_product_worst",
    quantity="error of inner products of RaBitQ at one bit, worst query",
    side=Side.TIGHT,
    value=d / (d - 1) * (d * InverseSquareOfL1(d) - 1),
    assuming=(d >= 2, d <= 10**4),
    reference=Reference("gao2024", "the estimator, its variance exactly", arxiv="2405.12497"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.ONE_BIT_RABITQ}), Conclusion.WORST_QUERY_ERROR),
    examples=(
        Example({"d": 2}, "0.546479089470", "2 (4/pi - 1)"),
        Example({"d": 3}, "0.57081759461", "quadrature over an octant of the sphere"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
