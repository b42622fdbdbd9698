"""Bits that name the support of a sparsifier.

Derivation.  There are binomial(d, k) supports, all possible (and equally likely for exchangeable coordinates), so a
fixed-length code needs log2 of that number and a prefix code at least as much on average.  Ranking attains it up to
rounding to whole bits.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_binomial import Log2Binomial
from ..symbols import d, kept

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
