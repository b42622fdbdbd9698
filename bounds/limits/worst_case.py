"""Bits of a contractive operator: what every code needs, what random covering attains, and names of supports.

All limits speak of one vector of d coordinates.  ``alpha`` is the share of ``|x|^2`` that may be lost.  The order is:
all bits counted, the norm not counted, the average over directions, the constructions, and sparse vectors.
"""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import NegLog2Cap, neg_log2_cap_of
from ..special.elementary import Log2Binomial
from ..symbols import alpha, angle, d, kept

contractive_bits = Bound(
    name="contractive_bits",
    quantity="bits of the longest message of a contractive operator, all bits counted",
    side=Side.LOWER,
    value=-d / 2 * sp.log(alpha, 2),
    reference=Reference("safaryan2020", "uncertainty principle", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.CONTRACTIVE, Property.SELF_DELIMITING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example({"alpha": "0.25", "d": 10}, "10.0000000000", "log2(4) = 2: one bit per coordinate, by hand"),
        Example({"alpha": "0.1", "d": 1000}, "1660.964047443681", "500 log2(10) from a table"),
    ),
    unit="bit",
    latex_name="b",
)
"""The uncertainty principle for contractive operators, all bits counted.

Derivation.  Private randomness: for every x of the unit ball some output lies within ``sqrt(alpha)|x| <= sqrt(alpha)``,
so 2^b balls of radius sqrt(alpha) cover the unit ball and 2^b alpha^(d/2) >= 1 by volume.  Shared randomness: take X
uniform in the unit ball, ``E|X|^2 = d/(d+2)``.  Among all sets of volume share p the ball has the least second moment
about a point, so a decoding cell of share p adds at least d/(d+2) p^(1 + 2/d); p -> p^(1 + 2/d) is convex and at most
2^b shares sum to 1, hence alpha d/(d+2) >= d/(d+2) 2^(-2b/d).  Averaging over keys changes nothing.

Bits spent on the direction alone may be fewer (on a circle 100 points at alpha = sin^2(pi/100) give
M alpha = .0987 < 1): the norm's bits must be counted, or ``worst_case_bits`` used instead.
"""

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
"""Expected bits of an operator that contracts surely, for a uniformly random direction.

Derivation.  X is uniform on the sphere.  Given the key, all x that share a message lie within sqrt(alpha) of one
output, so every message has probability at most P(alpha, d) and entropy(message ``|`` key) >= -log2 P.  A
self-delimiting message is a prefix code, hence its expected length is at least its entropy.
"""


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
"""Random covering: an upper bound on the fixed-length worst case, at every finite dimension.

Derivation.  Let phi = arcsin sqrt(alpha) and 0 < e < phi.  Take a maximal e-separated set of the sphere: its caps of
half-angle e/2 are disjoint, so it has at most S = 1/P(sin^2(e/2)) points, and every unit vector is within e of one.
Draw l/P_1 caps of half-angle phi - e at random, P_1 = P(sin^2(phi - e)), rounded up: a net point is missed with
probability at most e^-l, so some draw misses at most S e^-l of them, and each gets a cap of its own.  With l = max(0,
ln(S P_1)) at most (l + 1)/P_1 + 1 caps of half-angle phi = (phi - e) + e cover the sphere, and every cap of
half-angle phi lies within sqrt(alpha) of its best centre.  The value is log2 of that number; whole bits add less than
1.
"""

covering_midpoint_bits = Bound(
    name="covering_midpoint_bits",
    quantity="bits of the longest message about the direction x/|x| under |C(x)-x|^2 <= alpha |x|^2 surely",
    side=Side.TIGHT,
    value=neg_log2_cap_of(alpha, d) + sp.log(d, 2) + sp.log(sp.log(d, 2), 2) / 2,
    assuming=(sp.Ge(d, 2),),
    reference=Reference("dumer2007", "midpoint of known and conjectured covering densities"),
    status=Status.RECALLED,
    setting=Setting(
        frozenset({Property.STRICTLY_CONTRACTIVE}), Conclusion.LONGEST_DIRECTION, known_up_to="O(log log d) bits"
    ),
    examples=(
        Example({"alpha": "0.5", "d": 2}, "3.00000000000", "2 + 1 + 0 by hand: a quarter of the circle"),
        Example(
            {"alpha": "0.5", "d": 10**6},
            "500032.3815936739215395",
            "-log2 P from a 40-digit table, logarithms by mpmath",
        ),
    ),
    unit="bit",
    note="Recalled; a formula without a proof, not a limit: it lies between worst_case_bits and covering_bits.",
    latex_name=r"b^*",
)
"""Bits of the best fixed-length code for a direction, by a circulating formula for the density of coverings.

Statement.  b = -log2 P + log2 d + log2(log2 d)/2 + e, with e said to vanish.  No theorem gives it.  The overhead over
-log2 P is at most log2 d + log2(log2 d) - 1.53 + o(1) (Dumer 2007) and, by an unproved conjecture, at least
log2 d - 2.16; the formula is the middle of the two but for a constant, so e may lie anywhere in a range of log2(log2 d)
bits.  It does not vanish at d = 2, where b is log2 of pi/arcsin sqrt(alpha) rounded up and e tends to -1 with alpha.
The proved bracket is ``worst_case_bits`` to ``covering_bits``.
"""

sparse_worst_case_bits = Bound(
    name="sparse_worst_case_bits",
    quantity="bits of the longest message about the direction of a k-sparse vector",
    side=Side.LOWER,
    value=sp.Max(neg_log2_cap_of(alpha, kept), sp.log(kept + 1, 2)),
    assuming=(sp.Le(kept, d),),
    reference=Reference("albasyoni2020", "restricted to a support", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.STRICTLY_CONTRACTIVE_ON_SPARSE, Property.SELF_DELIMITING}), Conclusion.LONGEST_DIRECTION
    ),
    examples=(
        Example(
            {"alpha": "0.1", "kept": 10, "d": 1000}, "17.83766175141111179949405", "40-digit incomplete beta function"
        ),
    ),
    unit="bit",
    latex_name=r"b",
)
"""Worst-case bits of a strictly contractive operator on k-sparse vectors.

Derivation.  Restrict ``worst_case_bits`` to the vectors of one known support: projecting the outputs on it only reduces
the error.  (A support term would need a packing argument and is not claimed.)
"""

topk_index_bits = Bound(
    name="topk_index_bits",
    quantity="bits that name k of d coordinates",
    side=Side.TIGHT,
    value=Log2Binomial(d, kept),
    assuming=(sp.Le(kept, d),),
    reference=Reference("cover1973", "enumerative source encoding"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SUPPORT}), Conclusion.SUPPORT_LENGTH),
    examples=(
        Example({"d": 1000, "kept": 10}, "77.80165389163612385094359", "exact integer binomial, 40 digits"),
        Example({"d": 1000000, "kept": 1000}, "11401.450", "published table of support entropies"),
    ),
    unit="bit",
    latex_name=r"b",
)
"""Bits that name the support of a sparsifier.

Derivation.  There are binomial(d, k) supports, all possible (and equally likely for exchangeable coordinates), so a
fixed-length code needs log2 of that number and a prefix code at least as much on average.  Ranking attains it up to
rounding to whole bits.
"""
