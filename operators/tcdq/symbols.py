"""A vector's symbols, by whichever kernels suit its length and code."""

from __future__ import annotations

import numpy as np

from .quantise import back, forward, integers
from .stream import Grid
from .trellis import LANES
from .viterbi_simd import symbols_in_lanes


def symbols(x: np.ndarray, grid: Grid, before: np.ndarray, lanes: int) -> np.ndarray:
    """Return the packed symbols of a segment: int32, shape (d,).

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        Values of one segment.
    grid : Grid
        What it is quantised to.
    before : ndarray of int32, shape (2 states,)
        The trellis; see ``Trellis.before``.
    lanes : int
        How many trellises run side by side.
    """
    out = np.empty(x.size, np.int32)
    states = before.size // 2
    if states == 1:
        integers(x, grid, out)
        return out
    if lanes == LANES:
        symbols_in_lanes(x, grid, before, out)
        return out
    survivors = np.empty((-(-x.size // lanes), lanes), np.uint8 if states <= 8 else np.uint64)
    metric = np.full((states, lanes), np.float32(np.inf), np.float32)
    metric[0] = 0
    forward(x, grid, before, metric, out, survivors)
    back(out, survivors, metric.argmin(axis=0).astype(np.uint8), before.astype(np.uint8), grid)
    return out
