"""TurboQuant for squared error: its error at every d, exactly.

Derivation.  Rotate x uniformly to ``|x| u`` and put v = sqrt(d) u; decode ``|x|/sqrt(d)`` times the levels Q(v_i),
rotated back.  The error is ``|x|^2/d sum_i (v_i - Q(v_i))^2``, and every v_i has the law of v_1: ``E|y - x|^2 = |x|^2
E(v - Q(v))^2``, for every x.  E v^2 = 1. Averaged over the directions of a query, ``E<q, y - x>^2 = |q|^2 E|y -
x|^2/d``.  It is biased: E y = E[v Q(v)] x. Q has the levels of the normal law, as the published tables; D_b = E(g -
Q(g))^2 is the limit.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sphere_quantiser import SphereLevelProduct, SphereLevelSquare
from ..symbols import bits_per_coordinate, d

HOW = "quadrature over the density, levels by fixed-point iteration, 25 digits"

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
