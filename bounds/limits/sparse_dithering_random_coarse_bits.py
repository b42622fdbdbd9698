"""Expected bits of randomised Sparse Dithering for omega >= 1, with the step matched to omega.

With r = |x| and levels n_i = stochastic rounding of |x_i|/(r h), the decoder outputs r h sign_i n_i: unbiased.  k
levels are non-zero, with sum T; the fields are r (31 bits), k (log2(d + 1)), the support, k signs and the levels in
unary. With s = |x_i|^2/r^2 the rounding variance h^2 p(1-p) is at most h sqrt(s) - s up to s = h^2/4 (its concave
envelope), so equal coordinates are worst and the error is h sqrt(d) - 1 for h sqrt(d) >= 2: h = (1 + omega)/sqrt(d)
makes it omega.  Then E k <= E T <= d/(1 + omega) <= d/2, and H(q) + q is concave and increasing there.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_one_plus import Log2OnePlus
from ..symbols import d, omega

_ENTROPY = (sp.log(1 + omega, 2) + omega * Log2OnePlus(1 / omega)) / (1 + omega)  # H(1/(1 + omega))

sparse_dithering_random_coarse_bits = Bound(
    name="sparse_dithering_random_coarse_bits",
    quantity="expected bits of randomised Sparse Dithering, omega >= 1, fields of fractional length",
    side=Side.UPPER,
    value=31 + sp.log(d + 1, 2) + d * (_ENTROPY + 2 / (1 + omega)),
    assuming=(sp.Ge(omega, 1),),
    reference=Reference("albasyoni2020", "Sparse Dithering, randomised, own step", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.COARSE_SPARSE_DITHERING}), Conclusion.MEAN_MESSAGE),
    examples=(
        Example({"omega": 1, "d": 1000}, "2040.967226258835993524038", "logarithms with 40 digits"),
        Example({"omega": 3, "d": 1023}, "1382.4375", "H(1/4) = .811278 by hand: 41 + 1023 * 1.311278"),
    ),
    unit="bit",
    latex_name=r"E\,b",
)
