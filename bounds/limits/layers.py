"""Bits of layers of different variance that share one distortion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from ..bound import Bound, Example, Reference, Side, Status
from ..enclosure import exact
from ..interval import Interval
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.allocation import feedback_level, feedback_roots, unbiased_level
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
        Example({"d": 10, "layer_variance": 4, "water_level": 1}, "10.00000000", "one bit per coordinate, by hand"),
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


@dataclass(frozen=True)
class Allocation:
    """Bits of layers at equal slope: the level, every layer's constant, its bits, and the error of all.

    Parameters
    ----------
    level : Interval
        Common to all layers, certified.
    constants : tuple of Interval
        omega of unbiased layers, alpha of layers with memory, certified.
    layers : tuple of Interval
        Bits of each layer, certified.
    error : Interval
        Sum over the layers, certified.
    equal : Interval
        The same where all layers have one constant and the bits are the same, certified.
    """

    level: Interval
    constants: tuple[Interval, ...]
    layers: tuple[Interval, ...]
    error: Interval
    equal: Interval


def unbiased_water_filling(variances: Sequence[Any], sizes: Sequence[int], bits: Any) -> Allocation:
    """Return the least error of unbiased Gaussian layers that share a number of bits, and where the bits go.

    Parameters
    ----------
    variances : sequence
        Positive, variance of one coordinate of each layer, or times the layer's smoothness.  Prices of rounds, for bits
        over time.  All exact: int, Fraction, decimal string, or float at its binary value.
    sizes : sequence of int
        Coordinates of each layer.
    bits
        In all, positive.

    Raises
    ------
    ValueError
        For empty or unequal lists, or for numbers that are not positive.

    Notes
    -----
    Layer l has n_l independent Gaussian coordinates of variance v_l, and E[C(x)|x] = x.  With omega_l the error over
    n_l v_l, the information is at least sum n_l log2(1 + 1/omega_l)/2 (``gaussian_unbiased_bits``).  The error n_l v_l
    omega_l is convex in the bits of layer l, so equal slopes are optimal: omega_l (1 + omega_l) v_l = level for all l.
    No layer gets no bits at all.  Long blocks attain it.

    Over time, v_t is the price of round t's error, known when the round is encoded and not changed by the choice.  The
    sum decouples, and a constant level is optimal among all policies, also those that know the future.
    """
    amounts, counts, budget = _checked(variances, sizes, bits)
    level = unbiased_level([float(v) for v in amounts], counts, float(budget))

    def constant(theta: Any, v: Any) -> Any:
        return ((1 + 4 * theta / v).sqrt() - 1) / 2

    def needed(omega: Any) -> Any:
        return (1 + 1 / omega).log() / 2

    same = _power_of_two(2 * budget / sum(counts)) - 1
    return _allocation(level, amounts, counts, budget, constant, needed, lambda omega: omega, amounts, 1 / same)


def feedback_water_filling(squares: Sequence[Any], sizes: Sequence[int], bits: Any) -> Allocation:
    """Return the least memory of error feedback for layers that share a number of bits, and where the bits go.

    Parameters
    ----------
    squares : sequence
        Positive, mean squared gradient of each layer, over all its coordinates.  All exact, as for
        ``unbiased_water_filling``.
    sizes : sequence of int
        Coordinates of each layer.
    bits
        In all, positive.

    Raises
    ------
    ValueError
        For empty or unequal lists, or for numbers that are not positive.

    Notes
    -----
    The memory of layer l is at most eta^2 G_l^2 phi(alpha_l) with phi(alpha) = alpha/(1 - sqrt(alpha))^2
    (``ef_memory``), and its bits are at least n_l log2(1/alpha_l)/2 (``contractive_bits``).  With s = sqrt(alpha), phi
    is (2^b - 1)^-2 at b = log2(1/s) bits, so it is convex in the bits, and equal slopes are optimal: s^2/(1 - s)^3 =
    level n_l/G_l^2.  The error is that of eta = 1.
    """
    amounts, counts, budget = _checked(squares, sizes, bits)
    level = feedback_level([float(v) for v in amounts], counts, float(budget))

    def constant(theta: Any, target: Any) -> Any:
        from flint import arb

        middle = arb(float(feedback_roots(np.array([float((theta / target).mid())]))[0]))
        radius = arb(2) ** -46
        while radius < 1:
            low, high = middle * (1 - radius), (middle * (1 + radius)).min(arb(1))
            if low**2 * target < theta * (1 - low) ** 3 and high**2 * target > theta * (1 - high) ** 3:
                return (low.union(high)) ** 2
            radius *= 4
        return arb("nan")

    def needed(alpha: Any) -> Any:
        return -alpha.log() / 2

    def phi(alpha: Any) -> Any:
        return alpha / (1 - alpha.sqrt()) ** 2

    targets = [v / n for v, n in zip(amounts, counts, strict=True)]
    same = 1 / _power_of_two(2 * budget / sum(counts))
    return _allocation(level, targets, counts, budget, constant, needed, phi, targets, same)


def _checked(amounts: Sequence[Any], sizes: Sequence[int], bits: Any) -> tuple[list[Fraction], list[int], Fraction]:
    values, counts, budget = [exact(v) for v in amounts], [int(n) for n in sizes], exact(bits)
    if not values or len(values) != len(counts):
        raise ValueError(f"one size for each layer is needed; got {len(values)} layers, {len(counts)} sizes")
    if min(values) <= 0 or min(counts) < 1 or budget <= 0:
        raise ValueError(f"layers {values}, sizes {counts} and bits {budget} must be positive")
    return values, counts, budget


def _power_of_two(exponent: Fraction) -> Any:
    from flint import arb

    return arb(2) ** _ball(exponent)


def _ball(value: Fraction) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def _allocation(
    level: float,
    amounts: list[Fraction],
    counts: list[int],
    budget: Fraction,
    constant: Callable[[Any, Any], Any],
    needed: Callable[[Any], Any],
    cost: Callable[[Any], Any],
    weights: list[Fraction],
    same: Any,
) -> Allocation:
    """Return the allocation at a level that ball arithmetic encloses: bits fall as the level rises."""
    from flint import arb, ctx

    with ctx.workprec(192):
        values = [_ball(v) for v in amounts]
        spread = arb(2) ** -48
        while True:
            low, high = arb(level) * (1 - spread), arb(level) * (1 + spread)
            most, least = (
                sum((n * needed(constant(end, v)) for n, v in zip(counts, values, strict=True)), arb(0)) / arb(2).log()
                for end in (low, high)
            )
            if most >= _ball(budget) and least <= _ball(budget):
                break
            spread *= 4
        theta = low.union(high)
        chosen = [constant(theta, v) for v in values]
        bits = [n * needed(c) / arb(2).log() for n, c in zip(counts, chosen, strict=True)]
        scales = [n * _ball(w) for n, w in zip(counts, weights, strict=True)]
        error = sum((s * cost(c) for s, c in zip(scales, chosen, strict=True)), arb(0))
        equal = sum(scales, arb(0)) * cost(same)
        shares, lengths = (tuple(map(_interval, balls)) for balls in (chosen, bits))
        return Allocation(_interval(theta), shares, lengths, _interval(error), _interval(equal))


def _interval(ball: Any) -> Interval:
    ends = (end.man_exp() for end in (ball.lower(), ball.upper()))
    return Interval.outwards(*(Fraction(int(mantissa)) * Fraction(2) ** int(exponent) for mantissa, exponent in ends))
