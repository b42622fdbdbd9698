"""Bits that a whole optimisation run has to send, whatever the method, to be accurate on average over a shared key.

Derivation.  As in ``total_bits``, but E f(x) <= epsilon for every x*, over the key.  Let x* be uniform in the ball of
radius R: ``E|x* - x|^2 <= 2 epsilon/L``.  Given the key there are at most 2^b outputs; a cell of volume share p adds at
least d/(d+2) R^2 p^(1 + 2/d) to the mean (the ball has the least second moment), and p -> p^(1 + 2/d) is convex with
shares that sum to 1: d/(d+2) R^2 2^(-2b/d) <= 2 epsilon/L.  With gap = L R^2/2 the claim follows.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..special.log2_ratio import Log2Ratio
from ..symbols import d, epsilon, gap

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
