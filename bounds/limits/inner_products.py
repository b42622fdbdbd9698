"""Errors of inner products with a compressed vector: the limit, EDEN, RaBitQ and TurboQuant."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import InversePowerOfTwoLessOne
from ..special.inverse_square_of_l1 import InverseSquareOfL1
from ..special.lloyd_max import LloydMaxDistortion
from ..special.sphere_quantiser import SphereLevelProduct, SphereLevelSquare
from ..symbols import bits, bits_per_coordinate, d

inner_product_limit = Bound(
    name="inner_product_limit",
    quantity="error of inner products of an unbiased estimate, average over the query, all bits counted",
    side=Side.LOWER,
    value=InversePowerOfTwoLessOne(2 * bits / d),
    assuming=(bits > 0,),
    reference=Reference("safaryan2020", "uncertainty principle, for estimators", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNBIASED_INNER_PRODUCTS, Property.SELF_DELIMITING}),
        Conclusion.QUERY_ERROR,
    ),
    examples=(
        Example({"bits": 128, "d": 128}, "0.333333333333", "1/(4 - 1) by hand"),
        Example({"bits": 2, "d": 1}, "0.066666666667", "1/(16 - 1) by hand"),
        Example({"bits": 300, "d": 100}, "0.015873015873", "1/63 by hand"),
        Example({"bits": 4000, "d": 1000}, "0.003921568627", "1/255 by hand"),
    ),
    note="It bounds the longest message.",
    latex_name=r"\omega_{\mathrm{ip}}",
)
"""The limit of inner products: what any unbiased estimate from b bits leaves, counting all bits.

Derivation.  An estimator may be any function g(q, message, key), not only <q, Q(x)>.  Let E g(q, .) = <q, x> for all q
and x, and let its error, d ``E(g(q, .) - <q, x>)^2/(|q|^2 |x|^2)`` averaged over the directions of q, be at most w for
every x. Draw an orthonormal basis q_1, .., q_d uniformly from the shared key and decode y = sum_i g(q_i, .) q_i.  Then
E y = x, and ``E|y - x|^2 = sum_i E(g(q_i, .) - <q_i, x>)^2`` = d times the average over q, at most ``w |x|^2``: y is an
unbiased operator of constant w with the same messages.  So ``unbiased_bits`` holds with omega = w, b >= d log2(1 +
1/w)/2, which solved for w is the value.  In return an unbiased operator of constant omega has exactly the error omega
on average over q.
"""

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
"""RaBitQ's inner products at one bit and every d, exactly.

Derivation.  Rotate x uniformly to ``|x| u``; c are the signs of u, rotated back, and decoded is ``y = |x| c/|u|_1``, so
that ``<x, y> = |x|^2`` on every draw, ``|c|^2 = d`` and ``|y|^2 = d |x|^2/|u|_1^2``.  What y has beside x is symmetric
under the rotations that fix x, hence of mean 0: unbiased, and ``omega = E|y|^2/|x|^2 - 1 = d E|u|_1^-2 - 1`` for every
x.  On average over the directions of a query q, ``E<q, y - x>^2 = |q|^2 E|y - x|^2/d``.
"""

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
"""RaBitQ's inner products at one bit: the worst query, exactly.

Derivation.  As ``rabitq_inner_product``: the error y - x is orthogonal to x and uniform in its directions, so a query
with the part q' orthogonal to x has ``E<q, y - x>^2 = |q'|^2 E|y - x|^2/(d - 1)``: the largest value, d/(d-1) times the
average, at every q orthogonal to x, and none at q = x.
"""

turboquant_mse = Bound(
    name="turboquant_mse",
    quantity="E|Q(x) - x|^2/|x|^2 of TurboQuant for squared error: also its error of inner products, random queries",
    side=Side.TIGHT,
    value=1 - 2 * SphereLevelProduct(bits_per_coordinate, d) + SphereLevelSquare(bits_per_coordinate, d),
    assuming=(d >= 2,),
    reference=Reference("zandieh2025", "Algorithm 1 and Theorem 1", arxiv="2504.19874"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.TURBOQUANT_MSE}), Conclusion.QUERY_ERROR),
    examples=(
        Example({"bits_per_coordinate": 1, "d": 3}, "0.254643174482", "v uniform: 1 - sqrt(6/pi) + 2/pi"),
        Example({"bits_per_coordinate": 3, "d": 128}, "0.03397906846718", HOW),
        Example({"bits_per_coordinate": 2, "d": 10**9}, "0.1175", "D of Max (1960)"),
        Example({"bits_per_coordinate": 4, "d": 10**9}, "0.0095", "D of Max (1960)"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
"""TurboQuant for squared error: its error at every d, exactly.

Derivation.  Rotate x uniformly to ``|x| u`` and put v = sqrt(d) u; decode ``|x|/sqrt(d)`` times the levels Q(v_i),
rotated back.  The error is ``|x|^2/d sum_i (v_i - Q(v_i))^2``, and every v_i has the law of v_1: ``E|y - x|^2 = |x|^2
E(v - Q(v))^2``, for every x.  E v^2 = 1. Averaged over the directions of a query, ``E<q, y - x>^2 = |q|^2 E|y -
x|^2/d``.  It is biased: E y = E[v Q(v)] x. Q has the levels of the normal law, as the published tables; D_b = E(g -
Q(g))^2 is the limit.
"""

_left = 1 - 2 * SphereLevelProduct(bits_per_coordinate - 1, d) + SphereLevelSquare(bits_per_coordinate - 1, d)

turboquant_inner_product = Bound(
    name="turboquant_inner_product",
    quantity="error of inner products of TurboQuant for inner products, average over the query",
    side=Side.TIGHT,
    value=(sp.pi / 2 - 1 / d) * _left,
    assuming=(d >= 2,),
    reference=Reference("zandieh2025", "Algorithm 2 and Theorem 2", arxiv="2504.19874"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.TURBOQUANT_PROD}), Conclusion.QUERY_ERROR),
    examples=(
        Example({"bits_per_coordinate": 1, "d": 2}, "1.070796326795", "pi/2 - 1/2"),
        Example({"bits_per_coordinate": 2, "d": 3}, "0.315111504959", "(pi/2 - 1/3)(1 - sqrt(6/pi) + 2/pi)"),
        Example({"bits_per_coordinate": 4, "d": 128}, "0.05310873446375", HOW),
        Example({"bits_per_coordinate": 3, "d": 10**9}, "0.1845", "pi/2 times D = .11748 of Max (1960)"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
"""TurboQuant for inner products: its error on average over the query at every d, exactly.

Derivation.  Of b bits, b - 1 quantise x as in ``turboquant_mse``; r is what is left, ``E|r|^2 = D |x|^2`` with D its
value (1 for no bits).  The last bit sends the signs of S r, S a d x d matrix of independent standard normal entries,
and ``|r|`` beside them; decoded is ``|r| sqrt(pi/2)/d S^T sign(S r)``.  Of one row s: E <q, s> sign(<s, r>) =
sqrt(2/pi) ``<q, r>/|r|``, because <q, s> has the conditional mean <q, r> ``<s, r>/|r|^2`` given <s, r>; so ``sqrt(pi/2)
|r| <q, s>`` sign(<s, r>) has mean <q, r>, second moment ``pi/2 |r|^2 |q|^2``, and the average over d independent rows
the variance ::

    (pi/2 |r|^2 |q|^2 - <q, r>^2)/d,   given r.

Averaged over the directions of q, ``<q, r>^2 = |q|^2 |r|^2/d``: the error is (pi/2 - 1/d) D, and so is omega.
"""

turboquant_inner_product_worst = Bound(
    name="turboquant_inner_product_worst",
    quantity="error of inner products of TurboQuant for inner products, every query",
    side=Side.UPPER,
    value=sp.pi / 2 * _left,
    assuming=(d >= 2,),
    reference=Reference("zandieh2025", "Algorithm 2 and Theorem 2", arxiv="2504.19874"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.TURBOQUANT_PROD}), Conclusion.WORST_QUERY_ERROR),
    examples=(
        Example({"bits_per_coordinate": 1, "d": 100}, "1.570796326795", "pi/2"),
        Example({"bits_per_coordinate": 2, "d": 10**9}, "0.571", "pi/2 - 1 in the limit"),
        Example({"bits_per_coordinate": 4, "d": 10**9}, "0.0543", "pi/2 times D = .03454 of Max (1960)"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
"""TurboQuant for inner products: a bound for every query and every d.

Derivation.  As ``turboquant_inner_product``: given what the first b - 1 bits left, r, the variance is ``(pi/2 |r|^2
|q|^2 - <q, r>^2)/d`` <= ``pi/2 |r|^2 |q|^2/d``, and ``E|r|^2 = D |x|^2``.  At one bit r = x, and every q orthogonal to
x attains it. As d grows D tends to the Lloyd-Max distortion of b - 1 bits: pi/2, .571, .185, .0543 at 1 to 4 bits.
"""

turboquant_inner_product_limit = Bound(
    name="turboquant_inner_product_limit",
    quantity="error of inner products of TurboQuant for inner products, d large",
    side=Side.TIGHT,
    value=sp.pi / 2 * LloydMaxDistortion(bits_per_coordinate - 1),
    reference=Reference("zandieh2025", "Algorithm 2 and Theorem 2", arxiv="2504.19874"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.TURBOQUANT_PROD}), Conclusion.QUERY_ERROR, known_up_to="a factor 1 + O(1/d)"),
    examples=(
        Example({"bits_per_coordinate": 1}, "1.570796326795", "pi/2"),
        Example({"bits_per_coordinate": 2}, "0.570796326795", "pi/2 - 1"),
        Example({"bits_per_coordinate": 3}, "0.1845400550", "levels by fixed-point iteration, 25 digits"),
        Example({"bits_per_coordinate": 4}, "0.0542674957", "levels by fixed-point iteration, 25 digits"),
    ),
    latex_name=r"\omega_{\mathrm{ip}}",
)
"""TurboQuant's inner products as d grows, and why one bit more than EDEN does not make up for its sign bit.

Derivation.  In ``turboquant_inner_product`` the coordinate's law tends to the normal one, and the distortion of b - 1
bits to D_(b-1) of the Lloyd-Max quantiser (D_0 = 1): the error tends to (pi/2) D_(b-1), for the average query and for
the worst.

EDEN has D_b/(1 - D_b) at b bits (``eden_inner_product_limit``).  TurboQuant at b + 1 bits has (pi/2) D_b, which is at
least that exactly if 1 - D_b >= 2/pi = 1 - D_1: with equality at b = 1, where both are pi/2 - 1, and strictly above it.
"""
