"""A random subset of k coordinates that both ends draw alike."""

from __future__ import annotations

import math

import numpy as np

from ..key import Key
from .dither import hashes

STREAM = 1  # the fold of the key that orders the coordinates; the key itself feeds the dither


def chosen(key: Key, d: int, k: int) -> np.ndarray:
    """The k coordinates with the least hashes, ascending: int64, shape (k,).

    The hash is a bijection of the index, so there are no ties; each coordinate is in with probability k/d.
    """
    values = hashes(key.fold(STREAM), d)
    return np.flatnonzero(values <= np.partition(values, k - 1)[k - 1])


def sizes(d: int, omega: float, best: float) -> tuple[int, float]:
    """(k, distortion within the subset) with (1 + omega') d/k - 1 = omega; k = d as long as omega <= best.

    best : the distortion at which a bit a coordinate buys most.
    """
    if omega <= best:
        return d, omega
    k = min(d, math.ceil(d * (1 + best) / (1 + omega)))
    return k, (1 + omega) * k / d - 1
