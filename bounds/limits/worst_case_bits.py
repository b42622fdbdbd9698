"""Worst-case bits of an operator that contracts surely, the norm not counted.

Derivation.  Scale x to the unit sphere.  A b-bit message selects one of at most 2^b outputs (given the shared key),
and every x lies within sqrt(alpha) of its own output.

(a) A ball of radius sqrt(alpha) covers at most the share P(alpha, d) of the sphere, so 2^b P >= 1.
(b) Each of these balls meets the sphere in a cap of half-angle below pi/2.  Of any d centres c_1..c_d some unit x
    has <x, c_i> <= 0 for all i: the linear map x -> (<x, c_i>)_i is singular, and then a kernel vector does, or it
    is invertible, and then the solution of <x, c_i> = -1, scaled, does.  That x is served by none, so at least
    d + 1 outputs are needed for every alpha < 1.  (The unserved set contains a neighbourhood of x, so the argument
    survives a random key, for which the contraction may fail on a null set.)

The bound counts outputs needed for unit vectors, so it also holds for messages that carry the norm.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import neg_log2_cap_of
from ..symbols import alpha, d

worst_case_bits = Bound(
    name="worst_case_bits",
    quantity="bits of the longest message about the direction x/|x| under |C(x)-x|^2 <= alpha |x|^2 surely",
    side=Side.LOWER,
    value=sp.Max(neg_log2_cap_of(alpha, d), sp.log(d + 1, 2)),
    reference=Reference("albasyoni2020", "optimal compression, worst case", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.STRICTLY_CONTRACTIVE, Property.SELF_DELIMITING}), Conclusion.LONGEST_DIRECTION),
    examples=(
        Example({"alpha": "0.1", "d": 10}, "17.83766175141111179949405", "40-digit incomplete beta function"),
        Example({"alpha": "0.5", "d": 10**6}, "500010.2915334314144777118", "40-digit incomplete beta function"),
        Example({"alpha": "0.99999999", "d": 10**4}, "13.28785664184", "log2(10001): the second term, from a table"),
    ),
    unit="bit",
    note="For fixed-length messages; the d + 1 term counts outputs, so it does not bound an expected length.",
    latex_name="b",
)
