"""Bits of layers of different variance that share one distortion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..enclosure import exact
from ..interval import Interval
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.elementary import Log2Ratio
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
"""Reverse water-filling: the bits of one layer at a common distortion level.

Derivation.  The coordinates are independent, Gaussian, of variance s_l^2 within layer l.  Independent coordinates split
I(X; Y) >= sum I(X_i; Y_i) >= sum max(0, log2(s_i^2/D_i))/2 under sum D_i = D.  The right side is convex in the D_i, and
equal slopes mean D_i = min(level, s_i^2); see ``water_filling`` for the level that meets a total distortion.
"""


@dataclass(frozen=True)
class WaterFilling:
    """The common level, what each layer gets, and the total.

    Parameters
    ----------
    level : Fraction or None
        Exact, or None if the allowed distortion reaches the whole variance (nothing need be sent).
    layers : tuple of Interval
        Bits of each layer, certified.
    total : Interval
        Their sum, certified.
    """

    level: Fraction | None
    layers: tuple[Interval, ...]
    total: Interval


def water_filling(variances: Sequence[Any], sizes: Sequence[int], distortion: Any) -> WaterFilling:
    """Return least bits for independent Gaussian layers under a total mean square error, and where they go.

    Parameters
    ----------
    variances : sequence
        Positive, variance of one coordinate of each layer.
    sizes : sequence of int
        Coordinates of each layer.
    distortion
        Total mean square error allowed, positive, over all coordinates.  All exact: int, Fraction, decimal string, or
        float at its binary value.

    Raises
    ------
    ValueError
        For empty or unequal lists, or for numbers that are not positive.
    """
    amounts, counts, allowed = [exact(v) for v in variances], [int(n) for n in sizes], exact(distortion)
    if not amounts or len(amounts) != len(counts):
        raise ValueError(f"one size for each variance is needed; got {len(amounts)} variances, {len(counts)} sizes")
    if min(amounts) <= 0 or min(counts) < 1 or allowed <= 0:
        raise ValueError(f"all of variances {amounts}, sizes {counts} and distortion {allowed} must be positive")
    level = _level(amounts, counts, allowed)
    if level is None:
        zero = Interval(0.0, 0.0)
        return WaterFilling(None, (zero,) * len(amounts), zero)
    layers = tuple(
        layer_bits.enclose(d=n, layer_variance=v, water_level=level) for v, n in zip(amounts, counts, strict=True)
    )
    low, high = (
        sum((Fraction(end) for end in ends), Fraction(0)) for ends in zip(*((i.lo, i.hi) for i in layers), strict=True)
    )
    total = Interval.outwards(low, high)
    return WaterFilling(level, layers, total)


def _level(variances: list[Fraction], sizes: list[int], distortion: Fraction) -> Fraction | None:
    """Return the level at which sum of size min(level, variance) is the distortion."""
    order = sorted(zip(variances, sizes, strict=True))
    below, above = Fraction(0), sum(sizes)
    for variance, size in order:
        if below + above * variance > distortion:
            return (distortion - below) / above
        below, above = below + size * variance, above - size
    return None
