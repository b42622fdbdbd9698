"""EDEN's inner products at every d, exactly.

Derivation.  Rotate x uniformly to ``|x| u``, put v = sqrt(d) u, send the levels Q(v_i), decode ``y = f |x| sum_i Q(v_i)
r_i`` with r_i the rows of the rotation and f = 1/(sqrt(d) E v_1 Q(v_1)).  By symmetry under the rotations that fix x, E
y points along x, and ``E<y, x> = f |x|^2 sqrt(d) E v_1 Q(v_1) = |x|^2``: unbiased.  ``E|y|^2 = f^2 |x|^2 d E
Q(v_1)^2``, so omega = E Q^2/(E v Q)^2 - 1 for every x.  The error e = y - x has ``E<q, e>^2 = |q|^2 |e|^2/d`` on
average over the directions of a query q, whence the value.

For a fixed q the error is split between x and its complement: e = a x + w with w uniform in directions orthogonal to x,
so E<q, e>^2 = E a^2 ``<q, x>^2 + E|w|^2 |q'|^2/(d-1)``, q' the part of q orthogonal to x.  The query x itself has d E
a^2, a = sum v_i Q(v_i)/(d E v Q(v)) - 1; by the delta method for ``v = g sqrt(d)/|g|`` it tends to Var(g Q(g) - k
g^2/2)/(1 - D)^2, k = E (g^2 - 1) g Q(g): .0708, .192, .0842, .0267 at 1 to 4 bits, from 2 bits on above the average
over the queries (.571, .133, .0358, .0096).  The scale ``|x|^2/<y, x>`` of RaBitQ makes a = 0; then no query exceeds
d/(d-1) times the average.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_quantiser import SphereLevelProduct, SphereLevelSquare
from ..symbols import bits_per_coordinate, d

HOW = "quadrature over the density, levels by fixed-point iteration, 25 digits"

eden_inner_product = Bound(
    name="eden_inner_product",
    quantity="error of inner products of EDEN, average over the query",
    side=Side.TIGHT,
    value=SphereLevelSquare(bits_per_coordinate, d) / SphereLevelProduct(bits_per_coordinate, d) ** 2 - 1,
    assuming=(d >= 2,),
    reference=Reference("vargaftik2022", "unbiased scale, here constant", arxiv="2108.08842"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNIFORM_EDEN}), Conclusion.QUERY_ERROR),
    examples=(
        Example({"bits_per_coordinate": 1, "d": 2}, "0.233700550136", "pi^2/8 - 1"),
        Example({"bits_per_coordinate": 1, "d": 3}, "0.333333333333", "E|v| = sqrt(3)/2 for a uniform v: 4/3 - 1"),
        Example({"bits_per_coordinate": 2, "d": 3}, "0.07460190204680", HOW),
        Example({"bits_per_coordinate": 4, "d": 128}, "0.00941227056969", HOW),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
