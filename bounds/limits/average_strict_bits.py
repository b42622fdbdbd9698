"""Expected bits of an operator that contracts surely, for a uniformly random direction.

Derivation.  X is uniform on the sphere.  Given the key, all x that share a message lie within sqrt(alpha) of one
output, so every message has probability at most P(alpha, d) and entropy(message ``|`` key) >= -log2 P.  A
self-delimiting message is a prefix code, hence its expected length is at least its entropy.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import neg_log2_cap_of
from ..symbols import alpha, d

average_strict_bits = Bound(
    name="average_strict_bits",
    quantity="expected bits about a uniform direction under |C(x)-x|^2 <= alpha |x|^2 surely",
    side=Side.LOWER,
    value=neg_log2_cap_of(alpha, d),
    reference=Reference("albasyoni2020", "average case", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.STRICTLY_CONTRACTIVE, Property.SELF_DELIMITING}), Conclusion.SPHERE_MEAN_DIRECTION
    ),
    examples=(
        Example({"alpha": "0.9", "d": 100}, "10.61546982222965891421354832", "40-digit incomplete beta function"),
        Example({"alpha": "0.5", "d": 2}, "2.00000000000000", "a quarter of the circle, by hand"),
    ),
    unit="bit",
    note="The norm is not counted.",
    latex_name=r"E\,b",
)
