"""Reverse water-filling: how a total distortion is best split over layers of different variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..enclosure import exact
from ..interval import Interval
from .layer_bits import layer_bits


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
