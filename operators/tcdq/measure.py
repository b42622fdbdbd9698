"""Norm and largest magnitude of a vector in one compiled pass each."""

from __future__ import annotations

import math

import numba
import numpy as np

from ..scale import largest_pattern


@numba.njit(cache=True, nogil=True, fastmath=True)
def _energy(x):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum of squares in float64, in any order, of finite numbers: only the encoder needs it."""
    total = 0.0
    for i in range(x.size):
        total += np.float64(x[i]) * np.float64(x[i])
    return total


def norm(x: np.ndarray) -> float:
    """Euclidean norm, accumulated in float64."""
    return math.sqrt(_energy(x))


def largest(x: np.ndarray) -> float:
    """max|x| of finite float32 numbers, by their patterns: these are ordered as the magnitudes are."""
    return float(np.uint32(largest_pattern(x.view(np.uint32))).view(np.float32))
