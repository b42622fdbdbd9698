"""Expected bits of randomised Sparse Dithering, fields of whole bits.

With r = |x| and levels n_i = stochastic rounding of |x_i|/(r h), the decoder outputs r h sign_i n_i: unbiased.  k
levels are non-zero, with sum T; the fields are r (31 bits), k (log2(d + 1)), the support, k signs and the levels in
unary. As ``sparse_dithering_random_bits``; rounding the count and the rank up adds less than 2 bits.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import d, omega

sparse_dithering_random_whole_bits = Bound(
    name="sparse_dithering_random_whole_bits",
    quantity="expected bits of randomised Sparse Dithering, fields of whole bits",
    side=Side.UPPER,
    value=32 + sp.log(d + 1, 2) + (sp.log(3, 2) + 1 / (2 * sp.sqrt(omega))) * d,
    assuming=(sp.Ge(d, 2),),
    reference=Reference("albasyoni2020", "Sparse Dithering, randomised", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.WHOLE_RANDOM_SPARSE_DITHERING}), Conclusion.MEAN_MESSAGE),
    examples=(Example({"omega": "0.1", "d": 1000}, "3208.06855706418184097722", "logarithms with 40 digits"),),
    unit="bit",
    latex_name=r"E\,b",
)
