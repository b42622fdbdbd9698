"""Largest and least coordinate of a uniform unit vector; ``bounds.special.sphere_quantiser`` is about any one."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_RANGE = 10.0  # normal numbers beyond are too rare to matter in float64


@lru_cache(maxsize=64)
def extremes(d: int) -> tuple[float, float]:
    """Return (d E(max u - min u)^2, d E max u min u) for u uniform on the unit sphere of R^d, d >= 2.

    Both are the moments of d independent standard normal numbers, since quadratic forms scale with ``E|g|^2 = d``.
    With H(x, y) = P(min < x, max > y) = 1 - F(y)^d - (1 - F(x))^d + (F(y) - F(x))^d for x < y, the mean square range is
    2 times the integral of H over x < y; and max min = (max^2 + min^2 - range^2)/2.
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
