"""The quantiser of QUIC-FL: levels between -T and T with the least mean variance of stochastic rounding.

A number v with c_i <= v <= c_(i+1) goes to one of the two, with mean v and variance (v - c_i)(c_(i+1) - v); ``|v| > T``
is sent exactly, which happens to a standard normal number with probability ``EXACT``.  For a normal v the mean variance
is stationary in c_i if E (v - c_(i-1)) on the cell below equals E (c_(i+1) - v) on the cell above: solved by Newton,
with the symmetric levels +-c_1 < .. < +-c_n = T, n = 2^(b-1), and c_0 = -c_1 (Ben Basat et al. 2022).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bounds.special.sphere_quantiser import cell_moments

from ..coding.size_bounds import least
from ..compilation import jit
from .lloyd_max import Grid, grid_of

EXACT = 1 / 512
MAX_BITS = 8
_NEWTON_STEPS = 100
PIECE = 1024  # coordinates that are rounded together


@lru_cache(maxsize=MAX_BITS)
def positive_levels(bits: int) -> tuple[float, ...]:
    """Return c_1 < .. < c_n = T, n = 2^(bits - 1), 1 <= bits <= 8."""
    from scipy.special import ndtr, ndtri

    n, top = 2 ** (bits - 1), -float(ndtri(EXACT / 2))
    # companding as for nearest levels: a cell of width w has the variance w^2/6, so density ~ cube root of the law
    low = ndtr(-top / math.sqrt(3))
    c = -math.sqrt(3) * ndtri(0.5 - (0.5 - low) * (2 * np.arange(1, n + 1) - 1) / (2 * n - 1))
    for _ in range(_NEWTON_STEPS if n > 1 else 0):
        inner, below, above = c[:-1], np.concatenate(([-c[0]], c[:-2])), c[1:]
        under, over = ndtr(inner) - ndtr(below), ndtr(above) - ndtr(inner)
        rest = _density(below) - _density(above) - below * under - above * over
        slopes = np.diag((above - below) * _density(inner)) - np.diag(under[1:], -1) - np.diag(over[:-1], 1)
        slopes[0, 0] += under[0]
        step = np.linalg.solve(slopes, rest)
        c[:-1] -= step
        if np.max(np.abs(step)) <= 1e-15 * top:
            break
    c[-1] = top
    return tuple(float(v) for v in c)


def _density(v: np.ndarray) -> np.ndarray:
    return np.exp(-v * v / 2) / math.sqrt(2 * math.pi)


@lru_cache(maxsize=MAX_BITS)
def stochastic_grid(bits: int) -> Grid:
    """Return the 2^bits levels, searched for the number of levels below v."""
    positive = np.array(positive_levels(bits))
    levels = np.concatenate((-positive[::-1], positive))
    return grid_of(bits, levels, levels)


@lru_cache(maxsize=256)
def mean_variance(bits: int, d: int) -> float:
    """Return mean variance of a coordinate of a uniform vector on the sphere of radius sqrt(d)."""
    c = np.array(positive_levels(bits))
    mass, first, second = cell_moments(d, np.concatenate(([0.0], c)))
    inside = c[0] ** 2 * mass[0] - second[0]
    return float(inside + ((c[:-1] + c[1:]) * first[1:] - c[:-1] * c[1:] * mass[1:] - second[1:]).sum())


@lru_cache(maxsize=MAX_BITS)
def largest_variance(bits: int) -> float:
    """Return most that the variances of coordinates v with mean square 1 can be on average, by a Lagrange multiplier.

    For every t >= 0 the average is at most t + max_v (variance(v) - t v^2).
    """
    c = np.array(positive_levels(bits))

    def limit(t: float) -> float:
        v = np.clip((c[:-1] + c[1:]) / (2 * (1 + t)), c[:-1], c[1:])
        outer = (v - c[:-1]) * (c[1:] - v) - t * v * v
        return t + max(float(c[0] ** 2), float(outer.max(initial=0.0)))

    return min(limit(0.0), least(lambda log: limit(math.exp(log)), math.log(1e-9), math.log(1e3)))


@jit(error_model="numpy")
def round_stochastically(v, unit, top, levels, start, per_unit, below, inside, words, codes):
    """Fill ``codes`` (uint32) with a level next to v_i times unit, 2^bits where it is beyond +-top.

    Three loops over short pieces: the first and the last, which divides, are vector code, the one between looks up.
    """
    last, cells, beyond = np.int32(below.size - 1), np.int64(levels.size - 2), np.uint32(levels.size)
    scaled, cell = np.empty(PIECE, np.float32), np.empty(PIECE, np.int32)
    lows, highs = np.empty(PIECE, np.float32), np.empty(PIECE, np.float32)
    for first in range(0, v.size, PIECE):
        piece, drawn, out = v[first : first + PIECE], words[first : first + PIECE], codes[first : first + PIECE]
        for i in range(piece.size):
            scaled[i] = piece[i] * unit
            clipped = min(max(scaled[i], -top), top)
            cell[i] = min(max(np.int32((clipped - start) * per_unit), np.int32(0)), last)
        for i in range(piece.size):
            under = np.int64(below[cell[i]]) + np.int64(scaled[i] > inside[cell[i]]) - 1
            under = min(max(under, np.int64(0)), cells)
            lows[i], highs[i], out[i] = levels[under], levels[under + 1], under
        for i in range(piece.size):
            low, high = np.float64(lows[i]), np.float64(highs[i])
            up = np.float64(drawn[i]) * 2.0**-32 < (np.float64(scaled[i]) - low) / (high - low)
            out[i] = beyond if abs(scaled[i]) > top else out[i] + np.uint32(up)
