"""The largest variance of stochastic rounding to whole levels over the vectors of one Euclidean norm.

Derivation.  Scale ``|x_i|`` to v_i with sum v_i^2 = s^2; rounding v between n and n + 1 has the variance (v - n)(n + 1
- v) = -v^2 + (2n + 1) v - n (n + 1).  With q_i = 2 n_i + 1 and Q = sum q_i^2 the sum over coordinates is ::

    -s^2 + sum q_i v_i - (Q - d)/4  <=  s sqrt(Q) - s^2 - (Q - d)/4  =  d/4 - (s - sqrt(Q)/2)^2

by Cauchy and Schwarz, with equality at v = s q/sqrt(Q).  That point has n_i <= v_i <= n_i + 1 if ``|2 s - sqrt(Q)| q_i
<= sqrt(Q)``.  So the largest variance belongs to the sum Q of d odd squares whose root is nearest to 2 s.  For d >= 3
these sums are d, d + 8, d + 16, ... (every number is a sum of three triangular numbers, Gauss), for d = 1 and 2 the odd
squares and the sums of two of them.  Their roots are less than 2 apart, so the nearest one has ``|2 s - sqrt(Q)| <= 1``
and fulfils the condition, unless 4 s^2 < d = Q, where q_i = 1 fulfils it as well.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def largest_variance(levels: int, d: int) -> float:
    """Return sharp omega of rounding ``s |x_i|/|x|`` to whole levels: d/(4 s^2) - (1 - sqrt(Q)/(2 s))^2; levels = s, d
    >= 1.
    """
    if d == 1:
        return 0.0  # |x| itself is a level
    energy = _nearest_energy(levels, d)
    if energy == d >= 4 * levels**2:
        return math.sqrt(d) / levels - 1
    return d / (4 * levels**2) - (_distance(energy, levels) / (2 * levels)) ** 2


def extremal_vector(levels: int, d: int) -> np.ndarray:
    """Return a vector of odd whole numbers, shape (d,), at which the largest variance is reached."""
    odd = np.ones(d)
    if d == 1:
        return odd
    triangular = _triangular((_nearest_energy(levels, d) - d) // 8, d)
    odd[: len(triangular)] = 2 * np.array(triangular) + 1
    return odd


@lru_cache(maxsize=256)
def _nearest_energy(levels: int, d: int) -> int:
    """Return the sum Q of d >= 2 odd squares whose root is nearest to 2 levels."""
    below = max(0, (4 * levels**2 - d) // 8)
    if d > 2:
        return min((d + 8 * below, d + 8 * (below + 1)), key=lambda energy: abs(_distance(energy, levels)))
    first = np.arange(1, 2 * levels + 2, 2)
    rest = np.sqrt(np.maximum(4 * levels**2 - first**2, 1)).astype(np.int64)
    second = np.concatenate([rest - 1 + rest % 2, rest + 1 + rest % 2])  # the odd numbers around the root
    energies = np.concatenate([first, first]) ** 2 + second**2
    return int(min(energies.tolist(), key=lambda energy: abs(_distance(energy, levels))))


def _distance(energy: int, levels: int) -> float:
    """Return sqrt(energy) - 2 levels, without cancellation."""
    return (energy - 4 * levels**2) / (math.sqrt(energy) + 2 * levels)


def _triangular(total: int, count: int) -> list[int]:
    """At most ``count`` numbers n_i > 0 with sum n_i (n_i + 1)/2 = total, the largest first; [] for 0 or if none."""
    if not total:
        return []
    for n in range((math.isqrt(8 * total + 1) - 1) // 2, 0, -1):
        rest = total - n * (n + 1) // 2
        if not rest:
            return [n]
        if count > 1 and (others := _triangular(rest, count - 1)):
            return [n, *others]
        if count == 1:
            break
    return []
