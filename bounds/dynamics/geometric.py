"""Geometric sums that keep their digits when the factor is close to 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..special.growth import MeanGrowth


def excess(x: Any) -> np.ndarray:
    """Return (1 - x)^2 - 1 without cancellation: the exponent base minus one of a gradient step, x = eta lambda."""
    x = np.asarray(x, float)
    return -x * (2 - x)


def power(y: Any, n: Any) -> np.ndarray:
    """Return (1 + y)^n for y >= -1, n >= 0."""
    y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        return np.where(n == 0, 1.0, np.exp(n * np.log1p(y)))


def geometric_sum(y: Any, n: Any) -> np.ndarray:
    """Return sum_{s<n} (1 + y)^s for y >= -1, n >= 0; equal to n at y = 0."""
    y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        value = np.expm1(n * np.log1p(y)) / y
    return np.where(y == 0, n, np.where(n == 0, 0.0, value))


def mean_geometric_sum(y: Any, n: Any) -> np.ndarray:
    """Return (1/n) sum_{r<n} sum_{s<r} (1 + y)^s for y >= -1, n >= 1."""
    return MeanGrowth.kernel(y, n)


def one_minus_power(x: Any, n: Any) -> np.ndarray:
    """Return 1 - (1 - x)^n without cancellation for small x; whole n >= 0 where x > 1."""
    x, n = np.broadcast_arrays(np.asarray(x, float), np.asarray(n, float))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        return np.where(n == 0, 0.0, np.where(x < 1, -np.expm1(n * np.log1p(-x)), 1 - np.power(1 - x, n)))


def repeated(y: Any, increment: Any, start: Any, n: Any) -> np.ndarray:
    """Return the sum of the first n terms of M -> (1 + y) M + increment from ``start``, the start included."""
    return start * geometric_sum(y, n) + increment * n * mean_geometric_sum(y, n)
