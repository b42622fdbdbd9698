"""RaBitQ's inner products at one bit and every d, exactly.

Derivation.  Rotate x uniformly to ``|x| u``; c are the signs of u, rotated back, and decoded is ``y = |x| c/|u|_1``, so
that ``<x, y> = |x|^2`` on every draw, ``|c|^2 = d`` and ``|y|^2 = d |x|^2/|u|_1^2``.  What y has beside x is symmetric
under the rotations that fix x, hence of mean 0: unbiased, and ``omega = E|y|^2/|x|^2 - 1 = d E|u|_1^-2 - 1`` for every
x.  On average over the directions of a query q, ``E<q, y - x>^2 = |q|^2 E|y - x|^2/d``.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.inverse_square_of_l1 import InverseSquareOfL1
from ..symbols import d

rabitq_inner_product = Bound(
    name="rabitq_inner_product",
    quantity="error of inner products of RaBitQ at one bit, average over the query",
    side=Side.TIGHT,
    value=d * InverseSquareOfL1(d) - 1,
    assuming=(d >= 2, d <= 10**4),
    reference=Reference("gao2024", "the estimator, its variance exactly", arxiv="2405.12497"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.ONE_BIT_RABITQ}), Conclusion.QUERY_ERROR),
    examples=(
        Example({"d": 2}, "0.273239544735", "4/pi - 1"),
        Example({"d": 3}, "0.38054506307", "quadrature over an octant of the sphere"),
        Example({"d": 4}, "0.4337", "published for the same scale"),
        Example({"d": 64}, "0.5636", "published for the same scale"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
