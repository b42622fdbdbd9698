"""Worst-case bits of deterministic Sparse Dithering, fields of fractional length.

With r = |x|, step h = 2 sqrt(nu/d) and n_i = floor(|x_i|/(r h) + 1/2) levels, k of them non-zero with sum T, the
fields are a scale (31 bits), k - 1 (log2 d), the support (log2 binomial(d, k)), k signs and the levels in unary (T
bits).  The error is the squared sine of the angle to a vector within sqrt(nu) of x/r: at most nu |x|^2, surely. n_i
>= 1 means |x_i|/(r h) >= n_i - 1/2, so sum (n_i - 1/2)^2 <= d/(4 nu) over the support. Cauchy-Schwarz gives T <=
sqrt(k d/(4 nu)) + k/2, and log2 binomial(d, k) <= d H(k/d); maximise over q = k/d.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.sparse_dithering_rate import SparseDitheringRate
from ..symbols import d, nu

sparse_dithering_bits = Bound(
    name="sparse_dithering_bits",
    quantity="bits of one message of deterministic Sparse Dithering, fields of fractional length",
    side=Side.UPPER,
    value=31 + sp.log(d, 2) + SparseDitheringRate(nu) * d,
    reference=Reference("albasyoni2020", "Sparse Dithering", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SPARSE_DITHERING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example({"nu": "0.1", "d": 1}, "34.343486699241945600640", "stationary q by 40-digit root finding"),
        Example({"nu": "0.5", "d": 1024}, "2657.303080169", "1024 times c(.5) = 2.5549834767275527 plus 41"),
    ),
    unit="bit",
    latex_name=r"b",
)
