"""Bits that a whole run needs to reach an accuracy."""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import Log2OnePlus, Log2Ratio
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
"""Bits that a whole optimisation run has to send, whatever the method, to be surely accurate.

Derivation.  One worker knows ``f(x) = L|x - x*|^2/2``, the server knows L and that ``|x*| <= R``, starts at 0 and must
output x with f(x) <= epsilon after receiving b bits.  Outputs number at most 2^b (given the key) and their balls of
radius sqrt(2 epsilon/L) have to cover the ball of radius R: b >= d log2(R sqrt(L/(2 epsilon))) = (d/2)
log2(gap/epsilon), as the largest initial gap is L R^2/2.  More general problems and more workers contain this one.  An
accuracy that holds only on average over the key needs fewer bits: ``total_bits_in_expectation``.
"""

_REACHED = (d + 2) * epsilon / (d * gap)

total_bits_in_expectation = Bound(
    name="total_bits_in_expectation",
    quantity="bits received in a whole run that reduces F - inf F from gap to epsilon on average, on every quadratic",
    side=Side.LOWER,
    value=d / 2 * (Log2Ratio(gap, epsilon) - Log2OnePlus(2 / d)),
    assuming=(sp.Lt(_REACHED, 1),),
    reference=Reference("ratedist", "total_bits for a mean accuracy, by the moment of a ball"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.ISOTROPIC_QUADRATICS, Property.SELF_DELIMITING, Property.MEAN_ACCURACY}),
        Conclusion.RUN_BITS,
    ),
    examples=(
        Example({"d": 2, "gap": 1, "epsilon": "0.125"}, "2.000000000", "log2(1/(2 * .125)) = 2 by hand"),
        Example({"d": 1, "gap": 3, "epsilon": "0.0625"}, "2.00000000000", "log2(16)/2 = 2 by hand"),
    ),
    unit="bit",
    note="gap is its largest value over the problem class.",
    latex_name=r"b",
)
"""Bits that a whole optimisation run has to send, whatever the method, to be accurate on average over a shared key.

Derivation.  As in ``total_bits``, but E f(x) <= epsilon for every x*, over the key.  Let x* be uniform in the ball of
radius R: ``E|x* - x|^2 <= 2 epsilon/L``.  Given the key there are at most 2^b outputs; a cell of volume share p adds at
least d/(d+2) R^2 p^(1 + 2/d) to the mean (the ball has the least second moment), and p -> p^(1 + 2/d) is convex with
shares that sum to 1: d/(d+2) R^2 2^(-2b/d) <= 2 epsilon/L.  With gap = L R^2/2 the claim follows.
"""
