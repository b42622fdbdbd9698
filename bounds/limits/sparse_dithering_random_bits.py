"""Expected bits of randomised Sparse Dithering, fields of fractional length.

With r = |x| and levels n_i = stochastic rounding of |x_i|/(r h), the decoder outputs r h sign_i n_i: unbiased.  k
levels are non-zero, with sum T; the fields are r (31 bits), k (log2(d + 1)), the support, k signs and the levels in
unary. h = 2 sqrt(omega/d).  A rounding has variance at most 1/4, so the error is at most d h^2/4 = omega |x|^2, and E
T = sum |x_i|/(r h) <= d/(2 sqrt(omega)).  H(q) + q <= log2 3, and for 0 < k < d the support costs at most d H(k/d) -
1; at k = 0 and k = d, H + q is below log2 3 by 1.58 and .58, which is at least 1/d for d >= 2.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import d, omega

sparse_dithering_random_bits = Bound(
    name="sparse_dithering_random_bits",
    quantity="expected bits of randomised Sparse Dithering, fields of fractional length",
    side=Side.UPPER,
    value=30 + sp.log(d + 1, 2) + (sp.log(3, 2) + 1 / (2 * sp.sqrt(omega))) * d,
    assuming=(sp.Ge(d, 2),),
    reference=Reference("albasyoni2020", "Sparse Dithering, randomised", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.RANDOM_SPARSE_DITHERING}), Conclusion.MEAN_MESSAGE),
    examples=(Example({"omega": "0.1", "d": 1000}, "3206.06855706418184097722", "logarithms with 40 digits"),),
    unit="bit",
    latex_name=r"E\,b",
)
