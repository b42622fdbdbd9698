"""Bits of the best fixed-length code for a direction, by a circulating formula for the density of coverings.

Statement.  b = -log2 P + log2 d + log2(log2 d)/2 + e, with e said to vanish.  No theorem gives it.  The overhead over
-log2 P is at most log2 d + log2(log2 d) - 1.53 + o(1) (Dumer 2007) and, by an unproved conjecture, at least
log2 d - 2.16; the formula is the middle of the two but for a constant, so e may lie anywhere in a range of log2(log2 d)
bits.  It does not vanish at d = 2, where b is log2 of pi/arcsin sqrt(alpha) rounded up and e tends to -1 with alpha.
The proved bracket is ``worst_case_bits`` to ``covering_bits``.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import neg_log2_cap_of
from ..symbols import alpha, d

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
