"""TurboQuant's inner products as d grows, and why one bit more than EDEN does not make up for its sign bit.

Derivation.  In ``turboquant_inner_product`` the coordinate's law tends to the normal one, and the distortion of b - 1
bits to D_(b-1) of the Lloyd-Max quantiser (D_0 = 1): the error tends to (pi/2) D_(b-1), for the average query and for
the worst.

EDEN has D_b/(1 - D_b) at b bits (``eden_inner_product_limit``).  TurboQuant at b + 1 bits has (pi/2) D_b, which is at
least that exactly if 1 - D_b >= 2/pi = 1 - D_1: with equality at b = 1, where both are pi/2 - 1, and strictly above it.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.lloyd_max import LloydMaxDistortion
from ..symbols import bits_per_coordinate

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
