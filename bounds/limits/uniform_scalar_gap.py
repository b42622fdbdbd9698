"""Entropy-coded uniform scalar quantisation of a Gaussian coordinate: its exact gap to the rate-distortion function.

The index of round(X/h) has the entropy H, which an ideal entropy coder of long blocks attains, and decoding to the
cell's mean leaves the error D; the gap is H - log2(1/D)/2.  It tends to log2(2 pi e/12)/2 = .2546 as h -> 0 and to 0 as
h grows, both by the sums that define H and D.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.uniform_quantiser import UniformQuantiserEntropy, UniformQuantiserLog2Error
from ..symbols import quantiser_step

uniform_scalar_gap = Bound(
    name="uniform_scalar_gap",
    quantity="bits a coordinate of entropy-coded uniform quantisation above the Gaussian rate at the same error",
    side=Side.TIGHT,
    value=UniformQuantiserEntropy(quantiser_step) + UniformQuantiserLog2Error(quantiser_step) / 2,
    assuming=(sp.Ge(quantiser_step, sp.Rational(1, 100)),),
    reference=Reference("gish1968", "asymptotically efficient quantising"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.GAUSSIAN_SOURCE, Property.UNIFORM_QUANTISER}), Conclusion.EXCESS_OVER_GAUSSIAN),
    examples=(
        Example({"quantiser_step": "0.25"}, "0.254614", "published check value"),
        Example({"quantiser_step": 3}, "0.197754", "published check value"),
    ),
    unit="bit",
    latex_name="H - R",
)
