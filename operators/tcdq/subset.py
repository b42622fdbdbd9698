"""A random subset of k coordinates that both ends draw alike: those with the least hashes.

The hash is a bijection of the index, so there are no ties, and each coordinate is in with probability k/d.  The
k-th least hash is found digit by digit from histograms, so that no hash has to be stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..compilation import jit
from ..key import Key
from ..random import bits32_of_rows
from .trellis import mix, seeds, seeds_from, segments

STREAM = 1  # the fold of the key that orders the coordinates; the key itself feeds the dither
HALF = 1 << 16
SHORT = 1 << 14  # coordinates; longer vectors are worth histograms of 16 bits


@jit
def _kth_least_of_few(first, second, d, k):
    """Return the k-th least hash byte by byte; to clear histograms of 16 bits takes longer than a short vector."""
    counts, prefix, left = np.empty(256, np.int64), np.uint64(0), k
    for turn in range(4):
        counts[:] = 0
        shift = np.uint64(24 - 8 * turn)
        for i in range(d):
            digits = np.uint64(mix(i, first, second)) >> shift
            if digits >> np.uint64(8) == prefix:
                counts[digits & np.uint64(255)] += 1
        digit = 0
        while left > counts[digit]:
            left -= counts[digit]
            digit += 1
        prefix = (prefix << np.uint64(8)) | np.uint64(digit)
    return np.uint32(prefix)


@jit
def _kth_least(first, second, d, k):
    """Return the k-th least hash of the indices 0 .. d - 1."""
    if d <= SHORT:
        return _kth_least_of_few(first, second, d, k)
    counts, half = np.zeros(HALF, np.int64), np.uint32(16)
    for i in range(d):
        counts[mix(i, first, second) >> half] += 1
    high, left = 0, k
    while left > counts[high]:
        left -= counts[high]
        high += 1
    counts[:] = 0
    for i in range(d):
        h = mix(i, first, second)
        if h >> half == high:
            counts[h & np.uint32(HALF - 1)] += 1
    low = 0
    while left > counts[low]:
        left -= counts[low]
        low += 1
    return np.uint32((high << 16) | low)


@jit
def _gather(x, first, second, limit, out):
    """Without a branch: each coordinate is stored, and the position moves on if it is in (``out`` has one spare)."""
    position = 0
    for i in range(x.size):
        out[position] = x[i]
        position += int(mix(i, first, second) <= limit)


@jit
def _inside(first, second, limit, d):
    count = 0
    for i in range(d):
        count += int(mix(i, first, second) <= limit)
    return count


@jit
def _scatter(part, first, second, limit, factor, out):
    position = 0
    for i in range(out.size):
        inside = mix(i, first, second) <= limit
        out[i] = part[min(position, part.size - 1)] * factor if inside else np.float32(0)
        position += int(inside)


def gather(x: np.ndarray, k: int, key: Key) -> np.ndarray:
    """Return the k coordinates drawn, in order: shape (k,)."""
    words, out = seeds(key.fold_in(STREAM)), np.empty(k + 1, x.dtype)
    _gather(x, *words, _kth_least(*words, x.size, k), out)
    return out[:k]


def gather_rows(x: np.ndarray, k: int, keys: Sequence[Key]) -> np.ndarray:
    """Return what ``gather`` takes from each row, with a key of its own: shape (m, k)."""
    out = np.empty((len(x), k + 1), x.dtype)
    _gather_rows(x, _seeds_of_rows(keys), k, out)
    return np.ascontiguousarray(out[:, :k])


def scatter_rows(parts: np.ndarray, d: int, keys: Sequence[Key], factor: float) -> np.ndarray:
    """Return the vectors of ``scatter``, one per row: shape (m, d)."""
    out = np.empty((len(parts), d), parts.dtype)
    _scatter_rows(parts, _seeds_of_rows(keys), np.float32(factor), out)
    return out


def _seeds_of_rows(keys: Sequence[Key]) -> np.ndarray:
    return bits32_of_rows([key.fold_in(STREAM) for key in keys], 2)


@jit
def _gather_rows(x, seeds, k, out):
    for row in range(x.shape[0]):
        first, second = seeds[row]
        _gather(x[row], first, second, _kth_least(first, second, x.shape[1], k), out[row])


@jit
def _scatter_rows(parts, seeds, factor, out):
    for row in range(out.shape[0]):
        first, second = seeds[row]
        limit = _kth_least(first, second, out.shape[1], parts.shape[1])
        _scatter(parts[row], first, second, limit, factor, out[row])


def scatter(part: np.ndarray, d: int, key: Key, factor: float) -> np.ndarray:
    """Return the vector of d coordinates that has ``factor`` times ``part`` where they were drawn, and 0 elsewhere."""
    words, out = seeds(key.fold_in(STREAM)), np.empty(d, part.dtype)
    _scatter(part, *words, _kth_least(*words, d, part.size), np.float32(factor), out)
    return out


def gather_pieces(pieces: Iterator[np.ndarray], d: int, k: int, key: Key) -> Iterator[np.ndarray]:
    """Yield what ``gather`` takes from each piece of a vector.

    Parameters
    ----------
    pieces : iterator of ndarray
        d coordinates together.
    d : int
        Length of the vector.
    k : int
        1 <= k <= d.
    key : Key
        Stream from which the subset is drawn.
    """
    words, start = seeds(key.fold_in(STREAM)), 0
    last = _kth_least(*words, d, k)
    for x in pieces:
        from_here = seeds_from(start, words)
        out = np.empty(_inside(*from_here, last, x.size) + 1, x.dtype)
        _gather(x, *from_here, last, out)
        yield out[:-1]
        start += x.size


def scatter_pieces(parts: Iterator[np.ndarray], d: int, k: int, key: Key, factor: float) -> Iterator[np.ndarray]:
    """Yield the segments of what ``scatter`` returns.

    Parameters
    ----------
    parts : iterator of ndarray
        Values at the drawn coordinates.
    d : int
        Length of the vector.
    k : int
        How many are drawn.
    key : Key
        Stream from which the subset is drawn.
    factor : float
        Multiplies the values.
    """
    words, rest = seeds(key.fold_in(STREAM)), np.empty(0, np.float32)
    last = _kth_least(*words, d, k)
    for segment in segments(d):
        from_here, out = seeds_from(segment.start, words), np.empty(segment.stop - segment.start, np.float32)
        inside = _inside(*from_here, last, out.size)
        while rest.size < inside:
            rest = np.append(rest, next(parts))
        _scatter(rest if rest.size else np.zeros(1, np.float32), *from_here, last, np.float32(factor), out)
        rest = rest[inside:]
        yield out


def sizes(d: int, omega: float, knee: float) -> tuple[int, float]:
    """Return (k, distortion within the subset) with (1 + omega') d/k - 1 = omega; k = d as long as omega <= knee.

    Parameters
    ----------
    knee : float
        The most distortion of what is sent.
    """
    if omega <= knee:
        return d, omega
    k = min(d, math.ceil(d * (1 + knee) / (1 + omega)))
    return k, (1 + omega) * k / d - 1
