"""TurboQuant for inner products: a bound for every query and every d.

Derivation.  As ``turboquant_inner_product``: given what the first b - 1 bits left, r, the variance is ``(pi/2 |r|^2
|q|^2 - <q, r>^2)/d`` <= ``pi/2 |r|^2 |q|^2/d``, and ``E|r|^2 = D |x|^2``.  At one bit r = x, and every q orthogonal to
x attains it. As d grows D tends to the Lloyd-Max distortion of b - 1 bits: pi/2, .571, .185, .0543 at 1 to 4 bits.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_quantiser import SphereLevelProduct, SphereLevelSquare
from ..symbols import bits_per_coordinate, d

_left = 1 - 2 * SphereLevelProduct(bits_per_coordinate - 1, d) + SphereLevelSquare(bits_per_coordinate - 1, d)

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
