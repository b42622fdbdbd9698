"""EDEN's and RaBitQ's inner products as d grows.

Derivation.  The coordinates v_i of a uniform vector of length sqrt(d) become independent standard normal: ``v = g
sqrt(d)/|g|``. With D the distortion of the Lloyd-Max quantiser Q, E g Q(g) = E Q(g)^2 = 1 - D, since the levels are
means of their cells. Constant scale: omega = E Q(v)^2/(E v Q(v))^2 - 1 tends to 1/(1 - D) - 1 = D/(1 - D)
(``eden_inner_product``). Scale ``|x|^2/<x, y>``: ``omega = E[d |Q(v)|^2/<v, Q(v)>^2]`` - 1, Q(v) the vector of levels.
By the law of large numbers ``|Q(v)|^2/d`` and <v, Q(v)>/d tend to 1 - D.  With c and C the least and largest magnitude
of a level the ratio is at most ``(C/c)^2 d^2/|v|_1^2``, whose second moment stays bounded (``|v|_1/d`` is near
sqrt(2/pi), small values are exponentially rare); so the means converge too, to the same D/(1 - D).  There no query has
more than d/(d-1) times the average.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.lloyd_max import LloydMaxDistortion
from ..symbols import bits_per_coordinate

_distortion = LloydMaxDistortion(bits_per_coordinate)

eden_inner_product_limit = Bound(
    name="eden_inner_product_limit",
    quantity="error of inner products of EDEN with either scale, of RaBitQ at one bit, average over the query, d large",
    side=Side.TIGHT,
    value=_distortion / (1 - _distortion),
    reference=Reference("vargaftik2022", "unbiased scale", arxiv="2108.08842"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.ROTATED_LLOYD_MAX}),
        Conclusion.QUERY_ERROR,
        known_up_to="a factor 1 + O(1/d)",
    ),
    examples=(
        Example({"bits_per_coordinate": 1}, "0.57079632679", "pi/2 - 1"),
        Example({"bits_per_coordinate": 2}, "0.1331211687", "levels by fixed-point iteration, 25 digits"),
        Example({"bits_per_coordinate": 3}, "0.0357840185", "levels by fixed-point iteration, 25 digits"),
        Example({"bits_per_coordinate": 4}, "0.0095921430", "levels by fixed-point iteration, 25 digits"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
