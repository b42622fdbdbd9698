"""A random subset of k coordinates that both ends draw alike: those with the least hashes.

The hash is a bijection of the index, so there are no ties, and each coordinate is in with probability k/d.  The
k-th least hash is found from two histograms of 16 bits, so that no hash has to be stored.
"""

from __future__ import annotations

import math

import numpy as np

from ..compilation import jit
from ..key import Key
from .dither import mix, seeds

STREAM = 1  # the fold of the key that orders the coordinates; the key itself feeds the dither
HALF = 1 << 16


@jit
def _kth_least(first, second, d, k):
    """Return the k-th least hash of the indices 0 .. d - 1."""
    counts, half = np.zeros(HALF, np.int64), np.uint32(16)
    for i in range(d):
        counts[mix(i, first, second) >> half] += 1
    high, left = 0, k
    while left > counts[high]:
        left -= counts[high]
        high += 1
    counts[:] = 0
    for i in range(d):
        h = mix(i, first, second)
        if h >> half == high:
            counts[h & np.uint32(HALF - 1)] += 1
    low = 0
    while left > counts[low]:
        left -= counts[low]
        low += 1
    return np.uint32((high << 16) | low)


@jit
def _gather(x, first, second, limit, out):
    """Without a branch: each coordinate is stored, and the position moves on if it is in (``out`` has one spare)."""
    position = 0
    for i in range(x.size):
        out[position] = x[i]
        position += int(mix(i, first, second) <= limit)


@jit
def _scatter(part, first, second, limit, factor, out):
    position = 0
    for i in range(out.size):
        inside = mix(i, first, second) <= limit
        out[i] = part[min(position, part.size - 1)] * factor if inside else np.float32(0)
        position += int(inside)


def gather(x: np.ndarray, k: int, key: Key) -> np.ndarray:
    """Return the k coordinates drawn, in order: shape (k,)."""
    words, out = seeds(key.fold_in(STREAM)), np.empty(k + 1, x.dtype)
    _gather(x, *words, _kth_least(*words, x.size, k), out)
    return out[:k]


def scatter(part: np.ndarray, d: int, key: Key, factor: float) -> np.ndarray:
    """Return the vector of d coordinates that has ``factor`` times ``part`` where they were drawn, and 0 elsewhere."""
    words, out = seeds(key.fold_in(STREAM)), np.empty(d, part.dtype)
    _scatter(part, *words, _kth_least(*words, d, part.size), np.float32(factor), out)
    return out


def sizes(d: int, omega: float, knee: float) -> tuple[int, float]:
    """Return (k, distortion within the subset) with (1 + omega') d/k - 1 = omega; k = d as long as omega <= knee.

    Parameters
    ----------
    knee : float
        The most distortion of what is sent.
    """
    if omega <= knee:
        return d, omega
    k = min(d, math.ceil(d * (1 + knee) / (1 + omega)))
    return k, (1 + omega) * k / d - 1
