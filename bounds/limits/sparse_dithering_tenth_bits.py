"""The headline of deterministic Sparse Dithering at nu = 1/10: 30 + log2 d + 3.35 d bits, fractional fields.

With r = |x|, step h = 2 sqrt(nu/d) and n_i = floor(|x_i|/(r h) + 1/2) levels, k of them non-zero with sum T, the
fields are a scale (31 bits), k - 1 (log2 d), the support (log2 binomial(d, k)), k signs and the levels in unary (T
bits).  The error is the squared sine of the angle to a vector within sqrt(nu) of x/r: at most nu |x|^2, surely. n_i
>= 1 means |x_i|/(r h) >= n_i - 1/2, so sum (n_i - 1/2)^2 <= d/(4 nu) over the support. For k < d and d >= 3, log2
binomial(d, k) <= d H(k/d) - 1 (Stirling: binomial <= 2^(dH)/sqrt(2 pi k (d-k)/d), and that root exceeds 2); c(1/10) =
3.3435 < 3.35.  For k = d the sum is 31 + log2 d + (3/2 + sqrt(5/2)) d, below the claim for d >= 4; d = 3 is settled
by its largest T = 6.  It is false at d = 1 and 2, and with whole-bit fields at d = 3, 9 and 10 too.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import d

sparse_dithering_tenth_bits = Bound(
    name="sparse_dithering_tenth_bits",
    quantity="bits of one message of deterministic Sparse Dithering at nu = 1/10, fields of fractional length",
    side=Side.UPPER,
    value=30 + sp.log(d, 2) + sp.Rational(335, 100) * d,
    assuming=(sp.Ge(d, 3),),
    reference=Reference("albasyoni2020", "Sparse Dithering, nu = 1/10", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.TENTH_SPARSE_DITHERING}), Conclusion.LONGEST_MESSAGE),
    examples=(Example({"d": 1024}, "3470.4000000", "30 + 10 + 3430.4 by hand"),),
    unit="bit",
    latex_name=r"b",
)
