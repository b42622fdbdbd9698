"""The rate-distortion limit of an isotropic Gaussian vector under a mean-square constraint.

Statement.  X ~ N(0, s^2 I_d), ``E|C(X) - X|^2 <= alpha E|X|^2``.  Then the expected length of a self-delimiting message
(all bits, shared randomness free) is at least (d/2) log2(1/alpha).  Every contractive operator meets the premise.

Derivation.  Given the key, a self-delimiting message is a prefix code: E length >= H(message ``|`` key) >= I(X; ``C(X)
|`` key) = ``h(X) - h(X | C(X), key)`` >= h(X) - h(X - C(X)); X is independent of the key.  Among vectors with ``E|Z|^2
= D`` the Gaussian one has the largest entropy, and by concavity of the logarithm (Jensen over coordinates) it is at
most (d/2) log2(2 pi e D/d).  With D = alpha s^2 d and h(X) = (d/2) log2(2 pi e s^2) the claim follows.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import alpha, d

gaussian_bits = Bound(
    name="gaussian_bits",
    quantity="expected bits of one message about a Gaussian vector, E|C(X)-X|^2 <= alpha E|X|^2",
    side=Side.LOWER,
    value=-d / 2 * sp.log(alpha, 2),
    reference=Reference("shannon1959", "Gaussian source"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.CONTRACTIVE_ON_GAUSSIAN, Property.SELF_DELIMITING}), Conclusion.GAUSSIAN_MEAN_MESSAGE
    ),
    examples=(
        Example({"alpha": "0.25", "d": 1}, "1.000000000000", "one bit quarters the variance, by hand"),
        Example({"alpha": "0.5", "d": 1000}, "500.000000000", "half a bit a coordinate, by hand"),
    ),
    unit="bit",
    note="It includes the norm and holds for the expected length over the Gaussian input and the randomness.",
    latex_name=r"E\,b",
)
