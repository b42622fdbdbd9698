"""Worst-case bits of deterministic Sparse Dithering, sharpened by integer levels.

With r = |x|, step h = 2 sqrt(nu/d) and n_i = floor(|x_i|/(r h) + 1/2) levels, k of them non-zero with sum T, the
fields are a scale (31 bits), k - 1 (log2 d), the support (log2 binomial(d, k)), k signs and the levels in unary (T
bits).  The error is the squared sine of the angle to a vector within sqrt(nu) of x/r: at most nu |x|^2, surely. n_i
>= 1 means |x_i|/(r h) >= n_i - 1/2, so sum (n_i - 1/2)^2 <= d/(4 nu) over the support. T is a sum of integers, so its
largest mean under the mean budget is the concave polygon l of ``SparseDitheringIntegerRate``; log2 binomial(d, k) <=
d H(k/d); maximise over q = k/d.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sparse_dithering_rate import SparseDitheringIntegerRate
from ..symbols import d, nu

sparse_dithering_tight_bits = Bound(
    name="sparse_dithering_tight_bits",
    quantity="bits of one message of deterministic Sparse Dithering, fields of fractional length",
    side=Side.UPPER,
    value=31 + sp.log(d, 2) + SparseDitheringIntegerRate(nu) * d,
    reference=Reference("albasyoni2020", "Sparse Dithering, sharpened", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SPARSE_DITHERING}), Conclusion.LONGEST_MESSAGE),
    examples=(Example({"nu": "0.1", "d": 1}, "34.3069", "maximum over a fine grid of q"),),
    unit="bit",
    latex_name=r"b",
)
