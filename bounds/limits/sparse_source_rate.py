"""Rate of a coordinate that is zero with probability p_0 and Gaussian otherwise.

Derivation.  Let S tell whether X is zero; it is a function of X, so I(X; Y) >= ``I(X; Y | S) >= (1 - p_0) I(X; Y | X !=
0)`` >= (1 - p_0) log2(s^2/D_1)/2 with s^2 the variance of the Gaussian part and D_1 its share of the error, (1 - p_0)
D_1 <= D.  The source's variance is (1 - p_0) s^2, so the ratio is at least 1/nmse.  The position of the non-zero
coordinates is treated as known, so a code has to spend more at small nmse.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import nmse, zero_share

sparse_source_rate = Bound(
    name="sparse_source_rate",
    quantity="bits a coordinate at mean square error nmse times the variance",
    side=Side.LOWER,
    value=-(1 - zero_share) * sp.log(nmse, 2) / 2,
    reference=Reference("berger1971", "conditional rate-distortion"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.SPARSE_SOURCE}), Conclusion.INFORMATION_RATE),
    examples=(Example({"nmse": "0.25", "zero_share": "0.75"}, "0.2500000000", "a quarter of one bit, by hand"),),
    unit="bit",
    latex_name=r"R",
)
