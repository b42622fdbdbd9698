"""Random covering: an upper bound on the fixed-length worst case, at every finite dimension.

Derivation.  Let phi = arcsin sqrt(alpha) and 0 < e < phi.  Take a maximal e-separated set of the sphere: its caps of
half-angle e/2 are disjoint, so it has at most S = 1/P(sin^2(e/2)) points, and every unit vector is within e of one.
Draw l/P_1 caps of half-angle phi - e at random, P_1 = P(sin^2(phi - e)), rounded up: a net point is missed with
probability at most e^-l, so some draw misses at most S e^-l of them, and each gets a cap of its own.  With l = max(0,
ln(S P_1)) at most (l + 1)/P_1 + 1 caps of half-angle phi = (phi - e) + e cover the sphere, and every cap of
half-angle phi lies within sqrt(alpha) of its best centre.  The value is log2 of that number; whole bits add less than
1.
"""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import NegLog2Cap
from ..symbols import alpha, angle, d

# sine and cosine of phi - angle by the addition theorem, exact where sin^2 phi = alpha is close to 1
_SINE = sp.sqrt(alpha) * sp.cos(angle) - sp.sqrt(1 - alpha) * sp.sin(angle)
_COSINE = sp.sqrt(1 - alpha) * sp.cos(angle) + sp.sqrt(alpha) * sp.sin(angle)
_MISSES = NegLog2Cap(_SINE**2, _COSINE**2, d)  # -log2 P_1
_NET = NegLog2Cap(sp.sin(angle / 2) ** 2, sp.cos(angle / 2) ** 2, d)  # log2 S

covering_bits = Bound(
    name="covering_bits",
    quantity="log2 of the number of outputs that suffice for |C(x)-x|^2 <= alpha |x|^2 surely",
    side=Side.UPPER,
    value=_MISSES + sp.log(sp.log(2) * sp.Max(0, _NET - _MISSES) + 1 + 2**-_MISSES, 2),
    assuming=(sp.Ge(d, 2), sp.Lt(angle, sp.asin(sp.sqrt(alpha)))),
    reference=Reference("albasyoni2020", "random covering, own constants", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.RANDOM_COVERING}), Conclusion.LONGEST_DIRECTION),
    examples=(
        Example(
            {"alpha": "0.1", "d": 10, "angle": "0.05"},
            "24.46886691428229629926215",
            "40-digit incomplete beta functions",
        ),
        Example(
            {"alpha": "0.5", "d": 100, "angle": "0.01"},
            "64.05267643042539242400097",
            "40-digit incomplete beta functions",
        ),
    ),
    unit="bit",
    free=Free(angle, sp.Integer(0), sp.asin(sp.sqrt(alpha))),
    note="The norm is not counted.",
    latex_name=r"b",
)
