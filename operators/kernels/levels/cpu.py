"""Stochastic rounding compiled for the CPU: tile by tile, so that words and levels stay in the first cache level."""

from __future__ import annotations

import numba
import numpy as np
import torch

from ..fields.cpu import pack_fields, unpack_fields
from ..philox import Stream
from ..philox.cpu import TILE, fill_tile

UNIT = 2.0**-32


@numba.njit(cache=True, nogil=True)
def _round(x, rate, words, offset, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """One vector loop: ``offset`` plus the signed level of each coordinate."""
    for i in range(x.size):
        level = np.int32(np.float64(abs(x[i])) * rate + np.float64(words[i]) * UNIT)
        out[i] = offset + (-level if x[i] < 0 else level)


@numba.njit(cache=True, nogil=True)
def round_tile(x, at, step, rates, words, offset, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """``_round`` of the coordinates at .. at + x.size - 1 of a vector cut into runs of ``step``."""
    i = 0
    while i < x.size:
        run = (at + i) // step
        stop = min((run + 1) * step - at, x.size)
        _round(x[i:stop], rates[run], words[i:stop], np.int32(offset), out[i:stop])
        i = stop


@numba.njit(cache=True, nogil=True)
def _signed(x, step, rates, k0, k1, supplied, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    words = np.empty(TILE, np.uint32)
    for at in range(0, x.size, TILE):
        n = min(TILE, x.size - at)
        fill_tile(words, at, n, k0, k1, supplied)
        round_tile(x[at : at + n], at, step, rates, words, 0, out[at : at + n])


@numba.njit(cache=True, nogil=True)
def _encode(x, step, rates, most, width, k0, k1, supplied, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    words, levels = np.empty(TILE, np.uint32), np.empty(TILE, np.int32)
    for at in range(0, x.size, TILE):
        n = min(TILE, x.size - at)
        fill_tile(words, at, n, k0, k1, supplied)
        round_tile(x[at : at + n], at, step, rates, words, most, levels)
        pack_fields(levels[:n], width, out[(at * width) >> 3 : ((at + n) * width + 7) >> 3])


@numba.njit(cache=True, nogil=True)
def _scale(levels, most, spacing, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill ``out`` with spacing times level; returns the largest |level|."""
    top = np.int32(0)
    for i in range(levels.size):
        level = np.int32(levels[i] - most)
        top = max(top, abs(level))
        out[i] = np.float32(spacing * np.float64(level))
    return top


@numba.njit(cache=True, nogil=True)
def _decode(payload, step, spacings, most, width, reached, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    levels, valid = np.empty(TILE, np.int32), True
    for at in range(0, out.size, TILE):
        n, i = min(TILE, out.size - at), 0
        unpack_fields(payload[(at * width) >> 3 : ((at + n) * width + 7) >> 3], width, levels[:n])
        while i < n:
            run = (at + i) // step
            stop = min((run + 1) * step - at, n)
            top = _scale(levels[i:stop], np.int32(most), spacings[run], out[at + i : at + stop])
            valid &= top <= (most if spacings[run] > 0 else 0)
            reached[run] |= top == most
            i = stop
    return valid


def supplied_words(stream: Stream) -> np.ndarray:
    """The stream's supplied words, or an empty array."""
    return np.empty(0, np.uint32) if stream.words is None else stream.words.numpy().view(np.uint32)


def signed(x: torch.Tensor, step: int, rates: torch.Tensor, stream: Stream) -> torch.Tensor:
    """See the package."""
    out = np.empty(x.numel(), np.int32)
    k0, k1 = np.uint64(stream.k0), np.uint64(stream.k1)
    _signed(x.numpy(), step, rates.numpy(), k0, k1, supplied_words(stream), out)
    return torch.from_numpy(out)


def encode(x: torch.Tensor, step: int, rates: torch.Tensor, most: int, stream: Stream, room: int) -> torch.Tensor:
    """See the package."""
    width = (2 * most).bit_length()
    out = np.empty(room + (x.numel() * width + 7) // 8, np.uint8)
    k0, k1 = np.uint64(stream.k0), np.uint64(stream.k1)
    _encode(x.numpy(), step, rates.numpy(), most, width, k0, k1, supplied_words(stream), out[room:])
    return torch.from_numpy(out)


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """See the package."""
    out, reached = np.empty(d, np.float32), np.zeros(spacings.numel(), np.bool_)
    valid = _decode(payload.numpy(), step, spacings.numpy(), most, (2 * most).bit_length(), reached, out)
    return torch.from_numpy(out), torch.from_numpy(reached), bool(valid)
