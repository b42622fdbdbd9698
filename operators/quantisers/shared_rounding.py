"""The quantiser of QUIC-FL: stochastic rounding to levels that depend on l shared random bits per coordinate.

Sender and receiver know a number h, uniform on 0 .. 2^l - 1.  The sender chooses a code x of b bits, and the receiver
reads the level R[h, x].  A number v in [-T, T] has an unbiased message if the level has the mean v over h and the
sender's own coin.  For given levels the sender's best choice has a closed form: by the multiplier of the mean, every h
takes the level nearest to one number u(v).  As u grows, one h after the other moves from a level to the next, at the
middle t_k of the two, so that the mean level runs through knots a_0 < a_1 < .. < a_n, n = 2^l (2^b - 1).  Between a_k
and a_(k+1) only one h is undecided.  It moves with probability (v - a_k)/(a_(k+1) - a_k), and the mean square of the
level is linear in v with the slope 2 t_k.  Numbers beyond T are sent exactly; of normal numbers that is the share
``EXACT``.  ``docs/studies/quic_fl_levels.py`` computes the levels with the least mean variance for a normal v
(Ben Basat et al. 2022 solve the same problem on a grid of quantiles).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bounds.special.sphere_quantiser import cell_moments

from ..coding.size_bounds import least
from ..compilation import jit
from ..key import Key
from ..random import bits32

EXACT = 1 / 512
SHARED_BITS = {1: 6, 2: 5, 3: 4, 4: 4, 5: 3, 6: 3, 7: 2, 8: 2}  # l for each b, up to 4 bits those of the authors' code
MAX_BITS = max(SHARED_BITS)
LEVELS = Path(__file__).with_name("quic_fl_levels.json")
_MARGIN = 0.01  # of a cell, more than the rounding of its number in binary32


@dataclass(frozen=True, eq=False)
class SharedGrid:
    """A quantiser of b bits and l shared bits, with the table by which the sender finds its interval.

    Parameters
    ----------
    levels : ndarray
        R, float32, shape (2^l, 2^b), increasing in x.
    knots, squares : ndarray
        a_k and the mean square of the level there, float64, shape (n + 1,).
    moving : ndarray
        The h that moves between a_k and a_(k+1), uint8, shape (n,).
    codes : ndarray
        Code of each h at a_k, uint8, shape (n, 2^l).
    first : ndarray
        The interval at the lower end of the cell from ``start + j / per_unit``, uint16; a cell holds at most one knot.
    """

    levels: np.ndarray
    knots: np.ndarray
    squares: np.ndarray
    moving: np.ndarray
    codes: np.ndarray
    start: np.float32
    per_unit: np.float32
    first: np.ndarray

    @property
    def top(self) -> np.float32:
        """T, the largest binary32 number that has an unbiased message."""
        top = np.float32(self.knots[-1])
        return top if top <= self.knots[-1] else np.nextafter(top, np.float32(0))

    @property
    def slopes(self) -> np.ndarray:
        """Slope of the mean square between the knots, float64, shape (n,)."""
        return np.diff(self.squares) / np.diff(self.knots)


def sender_path(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (knots, squares, moving, code before each move) of the best unbiased sender for these levels."""
    middles = (levels[:, 1:] + levels[:, :-1]) / 2
    order = np.argsort(middles, axis=None, kind="stable")
    steps = np.diff(levels, axis=1).ravel()[order] / len(levels)
    knots = np.cumsum(np.concatenate(([levels[:, 0].mean()], steps)))
    squares = np.cumsum(np.concatenate(([np.mean(levels[:, 0] ** 2)], 2 * middles.ravel()[order] * steps)))
    moving, before = np.divmod(order, levels.shape[1] - 1)
    return knots, squares, moving, before


def mirrored(half: np.ndarray) -> np.ndarray:
    """Return all levels from those of the first half of h: R[2^l - 1 - h, x] = -R[h, 2^b - 1 - x]."""
    return np.concatenate((half, -half[::-1, ::-1]))


@lru_cache(maxsize=MAX_BITS)
def shared_grid(bits: int) -> SharedGrid:
    """Return the quantiser of 1 <= bits <= 8."""
    levels = mirrored(np.array(json.loads(LEVELS.read_text())[str(bits)], np.float32))
    knots, squares, moving, before = sender_path(levels.astype(np.float64))
    codes, code = np.empty((moving.size, len(levels)), np.uint8), np.zeros(len(levels), np.uint8)
    for k, (h, x) in enumerate(zip(moving, before, strict=True)):
        codes[k] = code
        code[h] = x + 1
    cells = 2
    while True:  # until no cell holds two knots
        start, per_unit = np.float32(knots[0]), np.float32(cells / (knots[-1] - knots[0]))
        lower = float(start) + (np.arange(cells + 1) - _MARGIN) / float(per_unit)
        upper = lower + (1 + 2 * _MARGIN) / float(per_unit)
        first = np.maximum(np.searchsorted(knots, lower, side="right") - 1, 0)
        if (np.searchsorted(knots, upper, side="left") - 1 - first <= 1).all():
            break
        cells *= 2
    first = np.minimum(first, moving.size - 1)
    return SharedGrid(levels, knots, squares, moving.astype(np.uint8), codes, start, per_unit, first.astype(np.uint16))


@lru_cache(maxsize=256)
def mean_variance(bits: int, d: int) -> float:
    """Return the mean variance of a coordinate of a uniform vector on the sphere of radius sqrt(d)."""
    grid = shared_grid(bits)
    middle = grid.moving.size // 2  # a_k = 0, since the levels are symmetric
    knots, squares, slopes = grid.knots[middle:].copy(), grid.squares[middle:-1], grid.slopes[middle:]
    knots[0], knots[-1] = 0.0, float(grid.top)
    mass, first, second = cell_moments(d, knots)
    return float(((squares - slopes * knots[:-1]) * mass + slopes * first - second).sum())


@lru_cache(maxsize=MAX_BITS)
def largest_variance(bits: int) -> float:
    """Return an upper bound on the average variance of coordinates v with mean square 1.

    For every t >= 0 the average is at most t + max_v (variance(v) - t v^2).
    """
    grid = shared_grid(bits)
    low, high, slopes = grid.knots[:-1], grid.knots[1:], grid.slopes

    def limit(t: float) -> float:
        v = np.clip(slopes / (2 * (1 + t)), low, high)
        return t + max(0.0, float((grid.squares[:-1] + slopes * (v - low) - (1 + t) * v * v).max()))

    return min(limit(0.0), least(lambda log: limit(math.exp(log)), math.log(1e-9), math.log(1e3)))


def shared_numbers(key: Key, n: int, *, start: int = 0) -> np.ndarray:
    """Return bytes start .. start + n - 1 of the stream, uint8; the lowest l bits of each are h.  4 divides start."""
    words = bits32(key, (n + 3) // 4, start=start // 4)
    return words.astype("<u4", copy=False).view(np.uint8)[:n]


@jit(error_model="numpy")
def round_with_shared(v, unit, top, knots, moving, codes, start, per_unit, first, shared, words, out):
    """Fill ``out`` (uint32) with the codes of v_i times unit, 2^32 - 1 where it is beyond +-top."""
    last, intervals, rows = np.int64(first.size - 1), np.int64(moving.size - 1), np.int64(codes.shape[1] - 1)
    for i in range(v.size):
        scaled = v[i] * unit
        value = np.float64(min(max(scaled, -top), top))
        cell = min(max(np.int64((np.float32(value) - start) * per_unit), np.int64(0)), last)
        k = np.int64(first[cell])
        k = min(k + np.int64(value > knots[k + 1]), intervals)
        h = np.int64(shared[i]) & rows
        up = np.float64(words[i]) * 2.0**-32 * (knots[k + 1] - knots[k]) < value - knots[k]
        code = np.uint32(codes[k, h]) + np.uint32(up & (np.int64(moving[k]) == h))
        out[i] = code if abs(scaled) <= top else np.uint32(0xFFFFFFFF)


@jit
def unpack_shared(payload, bits, levels, shared, out):
    """Fill ``out`` with the levels of the codes, a row of ``levels`` for each h."""
    mask, rows = np.uint64((1 << bits) - 1), np.int64(levels.shape[0] - 1)
    for group in range((out.size + 7) >> 3):
        word, n = np.uint64(0), min(8, out.size - 8 * group)
        for k in range(bits):
            position = group * bits + k
            word = (word << np.uint64(8)) | np.uint64(payload[position] if position < payload.size else 0)
        for i in range(n):
            h = np.int64(shared[8 * group + i]) & rows
            out[8 * group + i] = levels[h, np.int64((word >> np.uint64(bits * (7 - i))) & mask)]
