"""Nearest levels of a symmetric scalar quantiser as fields of b bits, first coordinate highest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bounds.special.lloyd_max import lloyd_max_levels, lloyd_max_thresholds

from ..compilation import jit

# A sum of a few numbers that is quick to load.


@jit
def added(numbers):
    """Return the sum of a vector, one number after the other, as numba's own ``sum`` makes it.

    That one asks SciPy for a BLAS when it is loaded, which takes a fresh process a quarter of a second.
    """
    total = 0.0
    for value in numbers:
        total += value
    return total


@dataclass(frozen=True, eq=False)
class Grid:
    """A quantiser of b bits and the equal cells by which a level is found without a search.

    Parameters
    ----------
    levels : ndarray
        float32, shape (2^b,).  Cell j starts at start + j / per_unit; ``below`` counts the thresholds under it,
        ``inside`` is the one threshold that it may hold (float32, the next one otherwise).
    """

    bits: int
    levels: np.ndarray
    start: np.float32
    per_unit: np.float32
    below: np.ndarray
    inside: np.ndarray


@lru_cache(maxsize=8)
def lloyd_max_grid(bits: int) -> Grid:
    """Return the Lloyd-Max quantiser of the standard normal law, 1 <= bits <= 8."""
    return grid_of(bits, lloyd_max_levels(bits), lloyd_max_thresholds(bits))


def grid_of(bits: int, levels: np.ndarray, thresholds: np.ndarray) -> Grid:
    """Return the cells for increasing thresholds, at most 2^16, that are distinct in binary32."""
    thresholds, cells = thresholds.astype(np.float32), 1
    while True:  # until no cell, in the arithmetic of the compiled search, holds two thresholds
        start = thresholds[0]
        per_unit = np.float32(cells / max(float(thresholds[-1] - start), 1.0))
        cell = ((thresholds - start) * per_unit).astype(np.int64)
        if np.unique(cell).size == cell.size:
            break
        cells *= 2
    below = np.searchsorted(cell, np.arange(cell[-1] + 1))
    inside = thresholds[np.minimum(below, thresholds.size - 1)]
    return Grid(bits, levels.astype(np.float32), start, per_unit, below.astype(np.uint16), inside)


@jit
def pack_nearest(v, unit, bits, levels, start, per_unit, below, inside, out):
    """Return codes of v_i times unit; returns (sum v_i level_i, sum level_i^2) in float64."""
    last = np.int64(below.size - 1)
    inner, square = np.zeros(8), np.zeros(8)
    for group in range((v.size + 7) >> 3):
        word, n = np.uint64(0), min(8, v.size - 8 * group)
        for i in range(n):
            value = v[8 * group + i]
            scaled = value * unit
            cell = min(max(np.int64((scaled - start) * per_unit), np.int64(0)), last)
            code = np.int64(below[cell]) + np.int64(scaled > inside[cell])
            level = np.float64(levels[code])
            inner[i] += np.float64(value) * level
            square[i] += level * level
            word = (word << np.uint64(bits)) | np.uint64(code)
        word <<= np.uint64(bits * (8 - n))
        for k in range((n * bits + 7) >> 3):
            out[group * bits + k] = np.uint8(word >> np.uint64(8 * (bits - 1 - k)))
    return added(inner), added(square)


@jit
def pack_positive(v, out):
    """Return ``pack_nearest`` for the two levels -1 and 1, far faster: 1 where v_i > 0; returns ``sum |v_i|`` in
    float64.
    """
    total = np.zeros(8)
    whole = v.size >> 3
    for group in range(whole):
        byte = 0
        for i in range(8):
            value = v[8 * group + i]
            byte |= (value > 0) << (7 - i)
            total[i] += np.float64(abs(value))
        out[group] = byte
    byte = 0
    for i in range(v.size - 8 * whole):
        byte |= (v[8 * whole + i] > 0) << (7 - i)
        total[i] += np.float64(abs(v[8 * whole + i]))
    if v.size & 7:
        out[whole] = byte
    return added(total)


@jit
def unpack_levels(payload, bits, levels, out):
    """Fill ``out`` with the levels of the codes."""
    mask = np.uint64((1 << bits) - 1)
    for group in range((out.size + 7) >> 3):
        word, n = np.uint64(0), min(8, out.size - 8 * group)
        for k in range(bits):
            position = group * bits + k
            word = (word << np.uint64(8)) | np.uint64(payload[position] if position < payload.size else 0)
        for i in range(n):
            out[8 * group + i] = levels[np.int64((word >> np.uint64(bits * (7 - i))) & mask)]
