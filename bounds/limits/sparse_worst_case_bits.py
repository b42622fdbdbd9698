"""Worst-case bits of a strictly contractive operator on k-sparse vectors.

Derivation.  Restrict ``worst_case_bits`` to the vectors of one known support: projecting the outputs on it only reduces
the error.  (A support term would need a packing argument and is not claimed.)
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.cap_probability import neg_log2_cap_of
from ..symbols import alpha, d, kept

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
