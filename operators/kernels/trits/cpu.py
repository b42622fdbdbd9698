"""Ternary digits compiled for the CPU."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..levels.cpu import round_tile, words_of
from ..philox import Stream
from ..philox.cpu import TILE, fill_tile
from ..threads import shared

TAIL_BITS = np.array([0, 2, 4, 5, 7])
ZERO_GROUP = 121  # five digits 1
_DIGITS = np.array([[g // 3**j % 3 - 1 if j < 5 else 0 for j in range(8)] for g in range(243)], np.float32)


@jit
def _pack(digits, out):
    whole = digits.size // 5
    for j in range(whole):
        g = digits[5 * j : 5 * j + 5]
        out[j] = np.uint8(g[0] + 3 * (g[1] + 3 * (g[2] + 3 * (g[3] + 3 * g[4]))))
    rest = digits.size - 5 * whole
    if rest:
        byte = 0
        for i in range(rest - 1, -1, -1):
            byte = 3 * byte + digits[5 * whole + i]
        out[whole] = np.uint8(byte << (8 - TAIL_BITS[rest]))


@jit
def _encode(x, begin, end, rates, stream, out):
    (k0, k1, supplied), words, digits = stream, np.empty(2 * TILE, np.uint32), np.empty(5 * TILE, np.int32)
    for start in range(begin, end, 5 * TILE):
        stop = min(start + 5 * TILE, end)
        for tile in range(start, stop, TILE):
            n = min(TILE, stop - tile)
            fill_tile(words, tile, n, k0, k1, supplied)
            round_tile(x, tile, n, x.size, rates, words, np.int32(1), digits, tile - start)
        _pack(digits[: stop - start], out[start // 5 :])


@jit
def _decode(payload, table, out):
    """Return returns (whether some level is not 0, whether all groups are possible); impossible ones read as others."""
    others, impossible = 0, 0
    whole, rest = out.size // 5, out.size % 5
    safe = max(0, (out.size - 3) // 5)  # a group is written with three entries of the next one
    for j in range(safe):
        byte = np.int64(payload[j])
        impossible += int(byte > 242)
        others += int(byte != ZERO_GROUP)
        row = table[min(byte, 242)]
        to = out[5 * j : 5 * j + 8]
        for i in range(8):
            to[i] = row[i]
    for j in range(safe, whole):
        byte = np.int64(payload[j])
        impossible += int(byte > 242)
        others += int(byte != ZERO_GROUP)
        row = table[min(byte, 242)]
        for i in range(5):  # to assign a slice takes two seconds more to compile
            out[5 * j + i] = row[i]
    if rest:
        byte, possible = np.int64(payload[whole]) >> (8 - TAIL_BITS[rest]), 3**rest
        others += int(byte != (possible - 1) // 2)
        impossible += int(byte >= possible)
        row = table[min(byte, 242)]
        for i in range(rest):
            out[5 * whole + i] = row[i]
    return others > 0, impossible == 0


def encode(x: torch.Tensor, rate: float, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round and pack tile by tile."""
    vector, n, rates, words = x.numpy(), x.numel(), np.array([rate]), words_of(stream)
    out = np.empty(room + n // 5 + (n % 5 > 0), np.uint8)
    shared(n, 5 * TILE, lambda begin, end: _encode(vector, begin, end, rates, words, out[room:]))
    return torch.from_numpy(out)


def decode(payload: torch.Tensor, n: int, scale: float) -> tuple[torch.Tensor, bool, bool]:
    """Look five digits up at once."""
    packed, table, out = payload.numpy(), _DIGITS * np.float32(scale), np.empty(n, np.float32)
    parts = shared(n, 5 * TILE, lambda start, stop: _decode(packed[start // 5 :], table, out[start:stop]))
    return torch.from_numpy(out), any(other for other, _ in parts), all(valid for _, valid in parts)
