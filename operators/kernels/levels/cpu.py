"""Stochastic rounding compiled for the CPU: tile by tile, so that words and levels stay in the first cache level."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..fields.cpu import pack_fields, unpack_fields
from ..philox import Stream
from ..philox.cpu import TILE, fill_tile

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
def _signed(x, step, scales, most, k0, k1, supplied, rates, words, out):
    _set_rates(scales, most, rates)
    for tile in range(0, x.size, TILE):
        n = min(TILE, x.size - tile)
        fill_tile(words, tile, n, k0, k1, supplied)
        round_tile(x, tile, n, step, rates, words, np.int32(0), out, tile)


@jit
def _encode(x, step, scales, most, width, k0, k1, supplied, rates, words, levels, out):
    _set_rates(scales, most, rates)
    for tile in range(0, x.size, TILE):
        n = min(TILE, x.size - tile)
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
def _decode(payload, step, spacings, most, width, reached, levels, out):
    valid = True
    for tile in range(0, out.size, TILE):
        n = min(TILE, out.size - tile)
        unpack_fields(payload[(tile * width) >> 3 : ((tile + n) * width + 7) >> 3], width, levels[:n])
        valid = _scale_tile(levels, np.int32(most), tile, n, step, spacings, reached, out) and valid
    return valid


def supplied_words(stream: Stream) -> np.ndarray:
    """Return the stream's supplied words, or an empty array."""
    return np.empty(0, np.uint32) if stream.words is None else stream.words.numpy().view(np.uint32)


def signed(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream) -> torch.Tensor:
    """Round tile by tile."""
    out = np.empty(x.numel(), np.int32)
    k0, k1 = np.uint64(stream.k0), np.uint64(stream.k1)
    rates, words = np.empty(scales.numel()), np.empty(2 * TILE, np.uint32)
    _signed(x.numpy(), step, scales.numpy(), most, k0, k1, supplied_words(stream), rates, words, out)
    return torch.from_numpy(out)


def encode(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round and pack tile by tile."""
    width = (2 * most).bit_length()
    out = np.empty(room + (x.numel() * width + 7) // 8, np.uint8)
    k0, k1 = np.uint64(stream.k0), np.uint64(stream.k1)
    rates, words, levels = np.empty(scales.numel()), np.empty(2 * TILE, np.uint32), np.empty(TILE, np.int32)
    supplied = supplied_words(stream)
    _encode(x.numpy(), step, scales.numpy(), most, width, k0, k1, supplied, rates, words, levels, out[room:])
    return torch.from_numpy(out)


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Unpack and scale tile by tile."""
    out, reached = np.empty(d, np.float32), np.zeros(spacings.numel(), np.bool_)
    width, levels = (2 * most).bit_length(), np.empty(TILE, np.int32)
    valid = _decode(payload.numpy(), step, spacings.numpy(), most, width, reached, levels, out)
    return torch.from_numpy(out), torch.from_numpy(reached), bool(valid)
