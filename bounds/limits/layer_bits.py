"""Reverse water-filling: the bits of one layer at a common distortion level.

Derivation.  The coordinates are independent, Gaussian, of variance s_l^2 within layer l.  Independent coordinates split
I(X; Y) >= sum I(X_i; Y_i) >= sum max(0, log2(s_i^2/D_i))/2 under sum D_i = D.  The right side is convex in the D_i, and
equal slopes mean D_i = min(level, s_i^2); see ``water_filling`` for the level that meets a total distortion.
"""

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.log2_ratio import Log2Ratio
from ..symbols import d, layer_variance, water_level

layer_bits = Bound(
    name="layer_bits",
    quantity="bits of a layer of d coordinates at the given water level",
    side=Side.LOWER,
    value=d / 2 * sp.Max(0, Log2Ratio(layer_variance, water_level)),
    reference=Reference("cover2006", "Theorem 10.3.3"),
    status=Status.PROVED,
    setting=Setting(frozenset({Property.LAYERED_GAUSSIAN_SOURCE}), Conclusion.LAYER_INFORMATION),
    examples=(
        Example({"d": 10, "layer_variance": 4, "water_level": 1}, "10.00000000", "one bit a coordinate, by hand"),
        Example({"d": 10, "layer_variance": "0.5", "water_level": 1}, "0.00000000", "below the water, by hand"),
    ),
    unit="bit",
    latex_name=r"b",
)
