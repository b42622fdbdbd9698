"""Signs of random projections, decoded without bias: one bit a coordinate (QJL: Zandieh et al. 2024).

Up to ``QUANTISER_LIMIT`` coordinates the projections are the d rows of a matrix S of independent standard normal
numbers. Of one row, <q, s> sign(<s, r>) has the mean sqrt(2/pi) ``<q, r>/|r|``, so sqrt(pi/2)/d S^T sign(S r) has the
``mean r/|r|``. Above, S is sqrt(d) times a Hadamard rotation: about right on most vectors, exact on none.
"""

from __future__ import annotations

import math

import numpy as np

from ..key import Key
from ..random import normal
from .rotation import QUANTISER_LIMIT, Rotation


def sketch(r: np.ndarray, key: Key) -> np.ndarray:
    """Return which projections are positive: bool, shape (d,).

    Parameters
    ----------
    r : float32, shape (d,)
    """
    d = r.size
    if d > QUANTISER_LIMIT:
        return Rotation(d, key).forward(r) > 0
    return np.asarray(_matrix(d, key) @ r.astype(np.float64) > 0)


def from_sketch(positive: np.ndarray, key: Key) -> np.ndarray:
    """Return sqrt(pi/2)/d S^T sign(S r), whose mean is ``r/|r|``: float32, shape (d,)."""
    d = positive.size
    sigma = np.where(positive, np.float32(1), np.float32(-1))
    if d > QUANTISER_LIMIT:
        return Rotation(d, key).inverse(sigma * np.float32(math.sqrt(math.pi / 2 / d)))
    return ((math.sqrt(math.pi / 2) / d) * (sigma.astype(np.float64) @ _matrix(d, key))).astype(np.float32)


def _matrix(d: int, key: Key) -> np.ndarray:
    return normal(key, d * d).reshape(d, d)
