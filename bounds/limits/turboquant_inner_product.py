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

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_quantiser import SphereLevelProduct, SphereLevelSquare
from ..symbols import bits_per_coordinate, d

_left = 1 - 2 * SphereLevelProduct(bits_per_coordinate - 1, d) + SphereLevelSquare(bits_per_coordinate - 1, d)

HOW = "quadrature over the density, levels by fixed-point iteration, 25 digits"

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
