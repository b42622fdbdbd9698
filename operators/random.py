"""Counter-based randomness: Philox4x32-10 (Salmon et al. 2011).

Number i of the stream of a key depends on (key, i) alone.  So numpy, numba and torch on any device produce the same
words, in any order and in any piece.  Nothing here touches a global generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import numpy as np
import torch

from .compilation import jit
from .kernels.philox import TILE, Stream, tiled
from .kernels.philox.cpu import fill_stream, fill_tile, rounds
from .key import Key, Keys

_MASK64 = 0xFFFFFFFFFFFFFFFF
_ABSENT = 1 << 64  # the rank of a shared key, when it is hashed


@lru_cache(maxsize=4096)
def philox_key(key: Key) -> tuple[int, int]:
    """Return the 64-bit Philox key of a stream: Philox absorbs the fields of the key one by one.

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    """
    rank = _ABSENT if key.rank is None else key.rank
    fields = [part for word in (key.step, rank, key.layer, *key.path) for part in (word & _MASK64, word >> 64)]
    k0, k1 = _absorb(np.array(fields, np.uint64), np.uint64(key.seed))
    return int(k0), int(k1)


@jit
def _absorb(fields, seed):
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    k0, k1 = seed & mask, seed >> half
    for i in range(fields.size // 2):
        low = fields[2 * i]
        k0, k1, _, _ = rounds(low & mask, low >> half, fields[2 * i + 1], np.uint64(i + 1), k0, k1)
    return k0, k1


def philox_keys(keys: Sequence[Key]) -> tuple[np.ndarray, np.ndarray]:
    """Return the 64-bit Philox keys of many streams: two uint64 arrays, shape (m,); see ``philox_key``.

    Parameters
    ----------
    keys : sequence of Key
        The streams, at least one.
    """
    first = keys[0]
    if isinstance(keys, Keys):
        columns = [[word] for word in (first.step, 0, first.layer, *first.path)]
        columns[1] = list(keys.ranks)
        seeds = [first.seed]
    elif len({len(key.path) for key in keys}) == 1:
        ranks = [_ABSENT if key.rank is None else key.rank for key in keys]
        folds = [list(column) for column in zip(*(key.path for key in keys), strict=True)]
        columns = [[key.step for key in keys], ranks, [key.layer for key in keys], *folds]
        seeds = [key.seed for key in keys]
    else:
        pairs = np.array([philox_key(key) for key in keys], np.uint64)
        return pairs[:, 0], pairs[:, 1]
    fields = np.empty((len(keys), 2 * len(columns)), np.uint64)
    for i, column in enumerate(columns):
        fields[:, 2 * i] = np.array([word & _MASK64 for word in column], np.uint64)
        fields[:, 2 * i + 1] = np.array([word >> 64 & _MASK64 for word in column], np.uint64)
    k0, k1 = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)
    _absorb_rows(fields, np.broadcast_to(np.array(seeds, np.uint64), (len(keys),)).copy(), k0, k1)
    return k0, k1


@jit
def _absorb_rows(fields, seeds, k0, k1):
    for row in range(seeds.size):
        k0[row], k1[row] = _absorb(fields[row], seeds[row])


WordSource = Callable[[Key, int, int], np.ndarray]
_source: ContextVar[WordSource | None] = ContextVar("operators.random.source", default=None)


@contextmanager
def words_from(source: WordSource | None) -> Iterator[None]:
    """Replace the words of ``bits32`` by ``source(key, n, start)`` inside this context (uint32, shape (n,)).

    For tests that choose the randomness, such as enumeration.  None restores the stream of the key.
    Only this context is affected.

    Parameters
    ----------
    source : WordSource or None
        Called with key, n and start; gives uint32 words of shape (n,).
    """
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def bits32(key: Key, n: int, *, start: int = 0) -> np.ndarray:
    """Return words start .. start + n - 1 of the stream: uint32, shape (n,).

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    n : int
        Number of words.
    start : int, optional
        Index of the first word.
    """
    source = _source.get()
    if source is not None:
        return source(key, n, start)
    out = np.empty(n, np.uint32)
    k0, k1 = philox_key(key)
    fill_stream(out, start, np.uint64(k0), np.uint64(k1))
    return out


def stream(key: Key, n: int, device: torch.device | str = "cpu", *, start: int = 0, d: int | None = None) -> Stream:
    """Return the source of n words for a kernel; words supplied by ``words_from`` take precedence.

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    n : int
        Number of words.
    device : device or str, optional
        Device of the result.
    start : int, optional
        First coordinate that uses them, a multiple of 4096 unless d is given.
    d : int or None, optional
        Number of coordinates of the vector, if the last word need not end a tile; None if it does, or is that of the
        last coordinate.  Words are supplied for all but a whole vector.
    """
    words, end = None, start + n
    stop = end if d is None else min(-(-end // TILE) * TILE, d)
    first = start - start % TILE
    if _source.get() is not None or start or stop > end:
        drawn = tiled(torch.from_numpy(bits32(key, stop - first, start=first).view(np.int32)))
        words = drawn[start - first : end - first].to(device)
    return Stream(*philox_key(key), words)


def bits32_of_rows(keys: Sequence[Key], n: int, *, start: int = 0) -> np.ndarray:
    """Return n words of every stream, in order: uint32, shape (m, n); see ``bits32``.

    Parameters
    ----------
    keys : sequence of Key
        The streams, one for each row, at least one.
    n : int
        Number of words of each.
    start : int, optional
        Index of the first word, 0 unless there is one row.
    """
    if len(keys) == 1:
        return bits32(keys[0], n, start=start)[None]
    if _source.get() is not None:
        return np.stack([bits32(key, n) for key in keys])
    out = np.empty((len(keys), n), np.uint32)
    _fill_rows(out, *philox_keys(keys), False, np.empty(2 * TILE, np.uint32), np.empty(0, np.uint32))
    return out


def stream_of_rows(keys: Sequence[Key], n: int) -> Stream:
    """Return the words of a batch for a kernel that takes its rows as one vector: n words of ``stream`` per row.

    Parameters
    ----------
    keys : sequence of Key
        The streams, one for each row, at least one.
    n : int
        Number of coordinates of a row.
    """
    if _source.get() is not None:
        words = torch.cat([tiled(torch.from_numpy(bits32(key, n).view(np.int32))) for key in keys])
        return Stream(0, 0, words)
    out = np.empty((len(keys), n), np.uint32)
    _fill_rows(out, *philox_keys(keys), True, np.empty(2 * TILE, np.uint32), np.empty(0, np.uint32))
    return Stream(0, 0, torch.from_numpy(out.view(np.int32).reshape(-1)))


@jit
def _fill_rows(out, k0, k1, in_tiles, words, none):
    """Fill row after row with the first words of its stream, in order or as they serve the coordinates of tiles."""
    for row in range(k0.size):
        if not in_tiles:
            fill_stream(out[row], 0, k0[row], k1[row])
            continue
        for tile in range(0, out.shape[1], TILE):
            n = min(TILE, out.shape[1] - tile)
            fill_tile(words, tile, n, k0[row], k1[row], none)
            for i in range(n):
                out[row, tile + i] = words[i]


def uniform(key: Key, n: int, *, start: int = 0) -> np.ndarray:
    """Return uniform multiples of 2^-32 on [0, 1), with mean 1/2 - 2^-33: float64, shape (n,).

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    n : int
        Number of random numbers.
    start : int, optional
        Index of the first word.
    """
    return bits32(key, n, start=start) * 2.0**-32


def uniform_of_rows(keys: Sequence[Key], n: int) -> np.ndarray:
    """Return ``uniform`` of many streams: float64, shape (m, n).

    Parameters
    ----------
    keys : sequence of Key
        The streams, one for each row, at least one.
    n : int
        Number of random numbers of each.
    """
    return bits32_of_rows(keys, n) * 2.0**-32


def normal(key: Key, n: int) -> np.ndarray:
    """Return standard normal numbers by the Box-Muller transform: float64, shape (n,).

    Parameters
    ----------
    key : Key
        Stream of random numbers.
    n : int
        Number of random numbers.
    """
    pairs = (n + 1) // 2
    u = (bits32(key, 2 * pairs).astype(np.float64) + 0.5) * 2.0**-32
    radius = np.sqrt(-2 * np.log(u[:pairs]))
    angle = 2 * np.pi * u[pairs:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n]
