"""Sign bits compiled for the CPU."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..norms.cpu import LANES, PIECE, piece_sum, sum_of_pieces
from ..threads import shared

_GATHER = 0x8040201008040201  # brings the lowest bits of eight bytes together in the highest byte, first byte first


@jit
def pack_signs(patterns, out):
    """Sign bits of binary32 patterns (uint32, shape (n,)) into ``out`` (uint8, shape (ceil(n/8),))."""
    limit = np.uint32(0x80000000)
    negative = np.empty(PIECE, np.uint8)
    eights = negative.view(np.uint64)
    for start in range(0, patterns.size, PIECE):
        part = patterns[start : min(start + PIECE, patterns.size)]
        for i in range(part.size):
            negative[i] = part[i] > limit
        negative[part.size : (part.size + 7) & ~7] = 0
        to = out[start >> 3 : (start + part.size + 7) >> 3]
        for j in range(to.size):
            to[j] = np.uint8((eights[j] * np.uint64(_GATHER)) >> np.uint64(56))


@jit
def _pack_with_sums(x, patterns, lanes, sums, out):
    """Sign bits, and the sum of the magnitudes of each piece."""
    for p in range(sums.size):
        start, stop = p * PIECE, min((p + 1) * PIECE, x.size)
        sums[p] = piece_sum(x, start, stop, False, lanes)
        pack_signs(patterns[start:stop], out[start >> 3 : (stop + 7) >> 3])


@jit
def _unpack(payload, plus, minus, out):
    whole = out.size >> 3
    for j in range(whole):
        byte = payload[j]
        for i in range(8):
            out[8 * j + i] = minus if byte & (128 >> i) else plus
    for i in range(8 * whole, out.size):
        out[i] = minus if payload[i >> 3] & (128 >> (i & 7)) else plus


def pack(x: torch.Tensor) -> torch.Tensor:
    """Gather eight signs by one product."""
    patterns, out = x.numpy().view(np.uint32), np.empty((x.numel() + 7) // 8, np.uint8)

    def work(start: int, stop: int) -> None:
        pack_signs(patterns[start:stop], out[start >> 3 : (stop + 7) >> 3])

    shared(patterns.size, PIECE, work)
    return torch.from_numpy(out)


def pack_with_sum(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Sum while the vector is in the cache."""
    vector, patterns = x.numpy(), x.numpy().view(np.uint32)
    out, sums = np.empty((x.numel() + 7) // 8, np.uint8), np.empty(-(-x.numel() // PIECE))

    def work(start: int, stop: int) -> None:
        piece_sums = sums[start // PIECE : -(-stop // PIECE)]
        packed = out[start >> 3 : (stop + 7) >> 3]
        _pack_with_sums(vector[start:stop], patterns[start:stop], np.empty(LANES), piece_sums, packed)

    shared(vector.size, PIECE, work)
    return torch.from_numpy(out), float(sum_of_pieces(sums, np.empty(LANES)))


def unpack(payload: torch.Tensor, n: int, plus: float = 1.0, minus: float = -1.0) -> torch.Tensor:
    """Look at bit after bit."""
    packed, out = payload.numpy(), np.empty(n, np.float32)
    values = np.float32(plus), np.float32(minus)
    shared(n, PIECE, lambda start, stop: _unpack(packed[start >> 3 :], *values, out[start:stop]))
    return torch.from_numpy(out)
