"""Bits of layers at equal slope: the level, and the constant of every layer there, in float64.

The laws are proved in ``bounds.limits.layers``, which also encloses the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

HALVINGS = 200  # of an interval of logarithms


def unbiased_constants(level: float, variances: np.ndarray) -> np.ndarray:
    """Return omega of each layer: the root of omega (1 + omega) variance = level.

    Parameters
    ----------
    level : float
        Positive.
    variances : ndarray, shape (n_layers,)
        Of one coordinate of each layer, positive.
    """
    ratio = 4 * level / variances
    return ratio / (np.sqrt(1 + ratio) + 1) / 2


def feedback_roots(levels: np.ndarray) -> np.ndarray:
    """Return sqrt(alpha) of each layer: the root s in (0, 1) of s^2/(1 - s)^3 = level.

    Parameters
    ----------
    levels : ndarray, shape (n_layers,)
        Positive.
    """
    low, high = np.zeros_like(levels), np.ones_like(levels)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle**2 < levels * (1 - middle) ** 3
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def unbiased_level(variances: Sequence[float], sizes: Sequence[int], bits: float) -> float:
    """Return the level at which unbiased layers together need the given bits.

    Parameters
    ----------
    variances : sequence of float
        Of one coordinate of each layer, positive.
    sizes : sequence of int
        Coordinates of each layer.
    bits : float, bits
        In all, positive.
    """
    v, n = np.asarray(variances, float), np.asarray(sizes, float)
    return _level(lambda level: float(n @ np.log1p(1 / unbiased_constants(level, v))) / math.log(4), bits)


def feedback_level(squares: Sequence[float], sizes: Sequence[int], bits: float) -> float:
    """Return the level at which contractive layers with memory together need the given bits.

    Parameters
    ----------
    squares : sequence of float
        Mean squared gradient of each layer, positive.
    sizes : sequence of int
        Coordinates of each layer.
    bits : float, bits
        In all, positive.
    """
    g, n = np.asarray(squares, float), np.asarray(sizes, float)
    return _level(lambda level: -float(n @ np.log2(feedback_roots(level * n / g))), bits)


def _level(needed: Callable[[float], float], bits: float) -> float:
    """Return where a decreasing function of a positive level has a value, by halving logarithms."""
    low, high = 1.0, 1.0
    while needed(low) < bits:
        low /= 16
    while needed(high) > bits:
        high *= 16
    for _ in range(HALVINGS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if needed(middle) > bits else (low, middle)
    return math.sqrt(low) * math.sqrt(high)
