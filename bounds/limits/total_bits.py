"""Bits that a whole optimisation run has to send, whatever the method, to be surely accurate.

Derivation.  One worker knows ``f(x) = L|x - x*|^2/2``, the server knows L and that ``|x*| <= R``, starts at 0 and must
output x with f(x) <= epsilon after receiving b bits.  Outputs number at most 2^b (given the key) and their balls of
radius sqrt(2 epsilon/L) have to cover the ball of radius R: b >= d log2(R sqrt(L/(2 epsilon))) = (d/2)
log2(gap/epsilon), as the largest initial gap is L R^2/2.  More general problems and more workers contain this one.  An
accuracy that holds only on average over the key needs fewer bits: ``total_bits_in_expectation``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_ratio import Log2Ratio
from ..symbols import d, epsilon, gap

total_bits = Bound(
    name="total_bits",
    quantity="bits received in a whole run that surely reduces F - inf F from gap to epsilon on every quadratic",
    side=Side.LOWER,
    value=d / 2 * Log2Ratio(gap, epsilon),
    assuming=(sp.Lt(epsilon, gap),),
    reference=Reference("tsitsiklis1987", "communication complexity of convex optimisation"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.ISOTROPIC_QUADRATICS, Property.SELF_DELIMITING, Property.SURE_ACCURACY}),
        Conclusion.RUN_BITS,
    ),
    examples=(
        Example(
            {"d": 1000, "gap": 1, "epsilon": "0.0009765625"}, "5000.00000", "ten halvings, half a bit each, by hand"
        ),
    ),
    unit="bit",
    note="gap is its largest value over the problem class.",
    latex_name=r"b",
)
