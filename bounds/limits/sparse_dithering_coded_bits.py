"""Bits of Sparse Dithering with one static arithmetic code for all coordinates.

With r = |x|, step h = 2 sqrt(nu/d) and n_i = floor(|x_i|/(r h) + 1/2) levels, k of them non-zero with sum T, the
fields are a scale (31 bits), k - 1 (log2 d), the support (log2 binomial(d, k)), k signs and the levels in unary (T
bits).  The error is the squared sine of the angle to a vector within sqrt(nu) of x/r: at most nu |x|^2, surely. n_i
>= 1 means |x_i|/(r h) >= n_i - 1/2, so sum (n_i - 1/2)^2 <= d/(4 nu) over the support. Code every coordinate with the
law p(0) = 1/Z, p(+-n) = e^(-l (n - 1/2)^2)/Z, Z = 1 + theta_2(e^-l).  By the budget the ideal length is at most d
log2 Z + l log2(e) d/(4 nu); an arithmetic coder adds at most 2 bits.  Any l > 0 is valid.
"""

import sympy as sp

from ..bound import Bound, Example, Free, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.theta_two import ThetaTwo
from ..symbols import d, nu, tilt

sparse_dithering_coded_bits = Bound(
    name="sparse_dithering_coded_bits",
    quantity="bits of one message of arithmetic-coded Sparse Dithering",
    side=Side.UPPER,
    value=33 + d * (sp.log(1 + ThetaTwo(tilt), 2) + tilt / (4 * nu * sp.log(2))),
    reference=Reference("albasyoni2020", "Sparse Dithering, arithmetic-coded (own)", arxiv="2010.03246"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.CODED_SPARSE_DITHERING}), Conclusion.LONGEST_MESSAGE),
    examples=(
        Example(
            {"nu": "0.1", "d": 1000, "tilt": "0.16"}, "3051.331641664941780384", "the sum over levels with 25 digits"
        ),
    ),
    unit="bit",
    free=Free(tilt, sp.Integer(0), 10 * nu),
    latex_name=r"b",
)
