"""Signs of random projections, decoded without bias: one bit per coordinate (QJL: Zandieh et al. 2024).

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
from .scale import energy


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


def from_sketch(sigma: np.ndarray, key: Key) -> np.ndarray:
    """Return sqrt(pi/2)/d S^T sigma, whose mean is ``r/|r|`` for sigma = sign(S r): float32, shape (d,).

    Parameters
    ----------
    sigma : float32, shape (d,)
        Times any factor, and so is the result; overwritten.
    """
    d, unit = sigma.size, math.sqrt(math.pi / 2)
    if d > QUANTISER_LIMIT:
        return Rotation(d, key).inverse(np.multiply(sigma, np.float32(math.sqrt(math.pi / 2 / d)), out=sigma))
    return (unit / d * (sigma.astype(np.float64) @ _matrix(d, key))).astype(np.float32)


def sketch_norm(positive: np.ndarray, key: Key) -> float:
    """Return the norm of ``from_sketch`` for the signs +1 where positive, else -1; sqrt(pi/2) for a rotation."""
    if positive.size > QUANTISER_LIMIT:
        return math.sqrt(math.pi / 2)
    return math.sqrt(energy(from_sketch(np.where(positive, np.float32(1), np.float32(-1)), key)))


def _matrix(d: int, key: Key) -> np.ndarray:
    return normal(key, d * d).reshape(d, d)
