"""A vector's symbols, by whichever kernels suit its length and code."""

from __future__ import annotations

import numpy as np

from . import coarse_simd, viterbi_simd
from .coarse import FULL, LEAST, back_coarse, forward_coarse, last_states
from .quantise import back, forward, integers
from .stream import Grid
from .trellis import LANES, Trellis


def symbols(x: np.ndarray, grid: Grid, trellis: Trellis, lanes: int) -> np.ndarray:
    """Return the packed symbols of a segment: int32, shape (d,).

    Parameters
    ----------
    x : ndarray of float32, shape (d,)
        Values of one segment.
    grid : Grid
        What it is quantised to.
    trellis : Trellis
        The code.
    lanes : int
        How many trellises run side by side.
    """
    out = np.empty(x.size, np.int32)
    if trellis.states == 1:
        integers(x, grid, out)
    elif lanes == LANES and trellis.coarse:
        coarse_simd.symbols_in_lanes(x, grid, trellis.states, out)
    elif lanes == LANES:
        viterbi_simd.symbols_in_lanes(x, grid, trellis.before, out)
    elif trellis.coarse:
        _coarse(x, grid, trellis, out, lanes)
    else:
        _fine(x, grid, trellis, out, lanes)
    return out


def _fine(x: np.ndarray, grid: Grid, trellis: Trellis, out: np.ndarray, lanes: int) -> None:
    survivors = np.empty((-(-x.size // lanes), lanes), np.uint8 if trellis.states <= 8 else np.uint64)
    metric = np.full((trellis.states, lanes), np.float32(np.inf), np.float32)
    metric[0] = 0
    forward(x, grid, trellis.before, metric, out, survivors)
    back(out, survivors, metric.argmin(axis=0).astype(np.uint8), trellis.before.astype(np.uint8), grid)


def _coarse(x: np.ndarray, grid: Grid, trellis: Trellis, out: np.ndarray, lanes: int) -> None:
    survivors = np.empty((-(-x.size // lanes), lanes, trellis.states), np.uint8)
    metric = np.full((trellis.states, lanes), FULL, np.uint8)
    metric[0] = LEAST
    forward_coarse(x, grid, trellis.before, metric, out, survivors)
    back_coarse(out, survivors, last_states(metric, grid), trellis.before, grid)
