"""The uncertainty principle for unbiased operators.

Derivation.  If C is unbiased with ``E|C(x) - x|^2 <= omega |x|^2``, then C/(1 + omega) contracts with alpha = omega/(1
+ omega): expand the square.  For a contractive operator with b bits, take X uniform in the unit ball ``(E|X|^2 =
d/(d+2))``.  A decoding cell of volume fraction p contributes at least d/(d+2) p^(1 + 2/d) to the distortion; convexity
over at most 2^b cells gives alpha >= 2^(-2b/d).  Shared randomness only averages such codes.  All bits count, those of
the norm included.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import d, omega

unbiased_bits = Bound(
    name="unbiased_bits",
    quantity="bits of the longest message of an unbiased operator, all bits counted",
    side=Side.LOWER,
    value=d / 2 * Log2OnePlus(1 / omega),
    reference=Reference("safaryan2020", "uncertainty principle", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNBIASED, Property.SELF_DELIMITING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example({"d": 1000, "omega": 1}, "500.000", "1 bit doubles 1 + 1/omega = 2: half a bit a coordinate"),
        Example({"d": 2, "omega": "0.3333333333333333333333"}, "2.0000000000", "log2(4) by hand"),
    ),
    unit="bit",
    latex_name="b",
)
