"""A vector's symbols, by whichever kernels suit its length and code."""

from __future__ import annotations

import numpy as np

from .lockstep import STATES, lockstep
from .quantise import back, forward, integers
from .trellis import LANES


def symbols(x: np.ndarray, scale: float, inverse: float, before: np.ndarray, lanes: int, seeds: tuple) -> np.ndarray:
    """Packed symbols of a segment: shape (d,), int32.

    scale : a power of two that brings the norm near 1; inverse : the reciprocal of the step after it, binary32.
    before : the trellis.  seeds : of the dither.
    """
    out = np.empty(x.size, np.int32)
    scale32, inverse32 = np.float32(scale), np.float32(inverse)
    states = before.size // 2
    if states == 1:
        integers(x, scale32, inverse32, *seeds, out)
        return out
    survivors = np.empty((-(-x.size // lanes), lanes), np.uint8 if states <= 8 else np.uint64)
    metric = np.full((states, lanes), np.float32(np.inf), np.float32)
    metric[0], top = 0, 0
    if lanes == LANES and states == STATES:
        top = lockstep(x, scale32, inverse32, *seeds, metric, out, survivors)
    forward(x, scale32, inverse32, *seeds, before, top, metric, out, survivors)
    back(out, survivors, metric.argmin(axis=0).astype(np.uint8), before.astype(np.uint8), *seeds)
    return out
