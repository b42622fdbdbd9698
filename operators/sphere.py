"""Moments of a coordinate of a uniform vector on the sphere of radius sqrt(d), cell by cell.

v = sqrt(d) u_1 with u uniform on the unit sphere of R^d has E v^2 = 1 and tends to a standard normal number;
v^2/d follows the Beta law of parameters 1/2 and (d-1)/2, and the same law weighted by v^2 that of 3/2 and (d-1)/2.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_RANGE = 10.0  # normal numbers beyond are too rare to matter in float64


def cell_moments(d: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mass, first, second): P, E|v| and E v^2 on edges_i <= |v| < edges_(i+1); edges >= 0 increasing, float64."""
    if d == 1:
        one = ((edges[:-1] <= 1) & (edges[1:] > 1)).astype(np.float64)
        return one, one, one
    from scipy.special import betainc, gammaln

    share = np.minimum(edges * edges / d, 1.0)
    mean = math.sqrt(d / math.pi) * math.exp(gammaln(d / 2) - gammaln((d + 1) / 2))  # E|v|
    mass = np.diff(betainc(0.5, (d - 1) / 2, share))
    first = -np.diff(mean * (1 - share) ** ((d - 1) / 2))
    return mass, first, np.diff(betainc(1.5, (d - 1) / 2, share))


def level_moments(d: int, levels: np.ndarray, thresholds: np.ndarray) -> tuple[float, float]:
    """(E v Q(v), E Q(v)^2) for a symmetric quantiser given by its positive levels and positive thresholds."""
    mass, first, _ = cell_moments(d, np.concatenate(([0.0], thresholds, [np.inf])))
    return float(levels @ first), float((levels * levels) @ mass)


@lru_cache(maxsize=64)
def extremes(d: int) -> tuple[float, float]:
    """(d E(max u - min u)^2, d E max u min u) for u uniform on the unit sphere of R^d, d >= 2.

    Both are the moments of d independent standard normal numbers, since quadratic forms scale with E|g|^2 = d.
    With H(x, y) = P(min < x, max > y) = 1 - F(y)^d - (1 - F(x))^d + (F(y) - F(x))^d for x < y, the mean square range
    is 2 times the integral of H over x < y; and max min = (max^2 + min^2 - range^2)/2.
    """
    from scipy.special import ndtr

    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, gap = _RANGE * nodes[:, None], _RANGE * (nodes[None] + 1)
    low, high = ndtr(x), ndtr(x + gap)
    both = 1 - high**d - (1 - low) ** d + np.maximum(high - low, 0) ** d
    squared = float(2 * _RANGE**2 * (weights @ both @ weights))
    v = _RANGE * nodes
    density = d * ndtr(v) ** (d - 1) * np.exp(-v * v / 2) / math.sqrt(2 * math.pi)
    return squared, float(_RANGE * (weights @ (v * v * density))) - squared / 2
