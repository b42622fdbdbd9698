"""Stochastic rounding compiled for the CPU: tile by tile, so that words and levels stay in the first cache level."""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch

from ...compilation import jit
from ..fields.cpu import pack_fields, unpack_fields
from ..philox import Stream
from ..philox.cpu import TILE, fill_tile
from ..threads import shared

UNIT = 2.0**-32


@jit
def round_tile(x, tile, n, step, rates, words, offset, out, to):
    """``offset`` plus the signed levels of coordinates tile .. tile + n - 1 of a vector cut into runs, from out[to] on.

    Slices would count references, which costs as much as sixteen coordinates each; unsigned indices cannot wrap
    around, so that the inner loop is a vector loop without them.
    """
    tile, to, i = np.uint64(tile), np.uint64(to), np.uint64(0)
    n, step = np.uint64(n), np.uint64(step)
    while i < n:
        run = (tile + i) // step
        rate, stop = rates[run], min((run + np.uint64(1)) * step - tile, n)
        for j in range(i, stop):
            v = x[tile + j]
            level = np.int32(np.float64(abs(v)) * rate + np.float64(words[j]) * UNIT)
            out[to + j] = offset + (-level if v < 0 else level)
        i = stop


@jit
def _set_rates(scales, most, rates):
    """Most / scale rounded up; 0 for scale 0."""
    for run in range(scales.size):
        rates[run] = np.nextafter(np.float64(most) / scales[run], np.inf) if scales[run] > 0 else 0.0


@jit
def _signed(x, begin, end, step, rates, stream, out):
    (k0, k1, supplied), words = stream, np.empty(2 * TILE, np.uint32)
    for tile in range(begin, end, TILE):
        n = min(TILE, end - tile)
        fill_tile(words, tile, n, k0, k1, supplied)
        round_tile(x, tile, n, step, rates, words, np.int32(0), out, tile)


@jit
def _encode(x, begin, end, step, rates, most, width, stream, out):
    (k0, k1, supplied), words, levels = stream, np.empty(2 * TILE, np.uint32), np.empty(TILE, np.int32)
    for tile in range(begin, end, TILE):
        n = min(TILE, end - tile)
        fill_tile(words, tile, n, k0, k1, supplied)
        round_tile(x, tile, n, step, rates, words, np.int32(most), levels, 0)
        pack_fields(levels[:n], width, out[(tile * width) >> 3 : ((tile + n) * width + 7) >> 3])


@jit
def _scale_tile(levels, most, tile, n, step, spacings, reached, out):
    """Return spacings times ``levels - most`` of a tile, and which runs reach ``most``; whether all is in range."""
    tile, n, step, i, valid = np.uint64(tile), np.uint64(n), np.uint64(step), np.uint64(0), True
    while i < n:
        run = (tile + i) // step
        spacing, top, stop = spacings[run], np.int32(0), min((run + np.uint64(1)) * step - tile, n)
        for j in range(i, stop):
            level = np.int32(levels[j] - most)
            top = max(top, abs(level))
            out[tile + j] = np.float32(spacing * np.float64(level))
        valid = valid and bool(top <= (most if spacing > 0 else 0))
        reached[run] |= top == most
        i = stop
    return valid


@jit
def _decode(payload, begin, end, step, spacings, most, width, reached, out):
    valid, levels = True, np.empty(TILE, np.int32)
    for tile in range(begin, end, TILE):
        n = min(TILE, end - tile)
        unpack_fields(payload[(tile * width) >> 3 : ((tile + n) * width + 7) >> 3], width, levels[:n])
        valid = _scale_tile(levels, np.int32(most), tile, n, step, spacings, reached, out) and valid
    return valid


def words_of(stream: Stream) -> tuple[np.uint64, np.uint64, np.ndarray]:
    """Return the stream's key, and its supplied words or an empty array."""
    supplied = np.empty(0, np.uint32) if stream.words is None else stream.words.numpy().view(np.uint32)
    return np.uint64(stream.k0), np.uint64(stream.k1), supplied


def _rates(scales: torch.Tensor, most: int) -> np.ndarray:
    rates = np.empty(scales.numel())
    _set_rates(scales.numpy(), most, rates)
    return rates


def signed(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream) -> torch.Tensor:
    """Round tile by tile."""
    vector, out, rates, words = x.numpy(), np.empty(x.numel(), np.int32), _rates(scales, most), words_of(stream)
    shared(vector.size, TILE, lambda begin, end: _signed(vector, begin, end, step, rates, words, out))
    return torch.from_numpy(out)


def encode(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round and pack tile by tile."""
    width, vector, rates, words = (2 * most).bit_length(), x.numpy(), _rates(scales, most), words_of(stream)
    out = np.empty(room + (x.numel() * width + 7) // 8, np.uint8)
    fixed = step, rates, most, width, words, out[room:]
    shared(vector.size, TILE, lambda begin, end: _encode(vector, begin, end, *fixed))
    return torch.from_numpy(out)


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Unpack and scale tile by tile."""
    out, width, packed, scales = np.empty(d, np.float32), (2 * most).bit_length(), payload.numpy(), spacings.numpy()

    def work(begin: int, end: int) -> tuple[np.ndarray, bool]:
        reached = np.zeros(scales.size, np.bool_)
        return reached, bool(_decode(packed, begin, end, step, scales, most, width, reached, out))

    parts = shared(d, TILE, work)
    reached = reduce(np.logical_or, (part for part, _ in parts))
    return torch.from_numpy(out), torch.from_numpy(reached), all(valid for _, valid in parts)
