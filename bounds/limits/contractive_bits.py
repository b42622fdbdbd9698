"""The uncertainty principle for contractive operators, all bits counted.

Derivation.  Private randomness: for every x of the unit ball some output lies within ``sqrt(alpha)|x| <= sqrt(alpha)``,
so 2^b balls of radius sqrt(alpha) cover the unit ball and 2^b alpha^(d/2) >= 1 by volume.  Shared randomness: take X
uniform in the unit ball, ``E|X|^2 = d/(d+2)``.  Among all sets of volume share p the ball has the least second moment
about a point, so a decoding cell of share p adds at least d/(d+2) p^(1 + 2/d); p -> p^(1 + 2/d) is convex and at most
2^b shares sum to 1, hence alpha d/(d+2) >= d/(d+2) 2^(-2b/d).  Averaging over keys changes nothing.

Bits spent on the direction alone may be fewer (on a circle 100 points at alpha = sin^2(pi/100) give
M alpha = .0987 < 1): the norm's bits must be counted, or ``worst_case_bits`` used instead.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import alpha, d

contractive_bits = Bound(
    name="contractive_bits",
    quantity="bits of the longest message of a contractive operator, all bits counted",
    side=Side.LOWER,
    value=-d / 2 * sp.log(alpha, 2),
    reference=Reference("safaryan2020", "uncertainty principle", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.CONTRACTIVE, Property.SELF_DELIMITING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example({"alpha": "0.25", "d": 10}, "10.0000000000", "log2(4) = 2: one bit a coordinate, by hand"),
        Example({"alpha": "0.1", "d": 1000}, "1660.964047443681", "500 log2(10) from a table"),
    ),
    unit="bit",
    latex_name="b",
)
