"""The rate-distortion limit of unbiased operators on an isotropic Gaussian vector.

Derivation.  Let C be unbiased with ``E|C(x) - x|^2 <= omega |x|^2``.  Expanding the square, ``E|C(x)/(1+omega) - x|^2
<= (omega + 1)/(1+omega)^2 |x|^2 - 2/(1+omega) |x|^2 + |x|^2 = omega/(1+omega) |x|^2``.  Scaling at the decoder costs no
bits, so ``gaussian_bits`` holds with alpha = omega/(1+omega).
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import d, omega

gaussian_unbiased_bits = Bound(
    name="gaussian_unbiased_bits",
    quantity="expected bits of one message of an unbiased operator about a Gaussian vector",
    side=Side.LOWER,
    value=d / 2 * Log2OnePlus(1 / omega),
    reference=Reference("safaryan2020", "class inclusion", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.UNBIASED, Property.SELF_DELIMITING}), Conclusion.GAUSSIAN_MEAN_MESSAGE),
    examples=(
        Example({"d": 1000, "omega": 1}, "500.00000", "half a bit a coordinate, by hand"),
        Example({"d": 2, "omega": "0.3333333333333333333333"}, "2.00000000000", "log2(4) by hand"),
        Example({"d": 1, "omega": "0.0039215686274509803921568627451"}, "4.0000000000", "omega = 1/255: 4 bits"),
    ),
    unit="bit",
    latex_name=r"E\,b",
)
