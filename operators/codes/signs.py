"""One bit a coordinate: 1 for a negative number, 0 for +0, -0 and positive ones."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _pack(patterns, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    limit = np.uint32(0x80000000)
    whole = patterns.size >> 3
    for j in range(whole):
        byte = 0
        for i in range(8):
            byte |= (patterns[8 * j + i] > limit) << (7 - i)
        out[j] = byte
    byte = 0
    for i in range(patterns.size - 8 * whole):
        byte |= (patterns[8 * whole + i] > limit) << (7 - i)
    if patterns.size & 7:
        out[whole] = byte


def pack_signs(x: np.ndarray) -> np.ndarray:
    """Sign bits of a float32 array, shape (n,), as ceil(n/8) bytes, zero-padded."""
    out = np.empty((x.size + 7) // 8, np.uint8)
    _pack(x.view(np.uint32), out)
    return out


@numba.njit(cache=True, nogil=True)
def _spread(payload, plus, minus, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    whole = out.size >> 3
    for j in range(whole):
        byte = payload[j]
        for i in range(8):
            out[8 * j + i] = minus if byte & (128 >> i) else plus
    for i in range(8 * whole, out.size):
        out[i] = minus if payload[i >> 3] & (128 >> (i & 7)) else plus


def unpack_signs(payload: np.ndarray, n: int, plus: float = 1.0, minus: float = -1.0) -> np.ndarray:
    """float32 array, shape (n,): ``minus`` where the bit is 1, ``plus`` elsewhere; payload has >= n bits."""
    out = np.empty(n, np.float32)
    _spread(payload, np.float32(plus), np.float32(minus), out)
    return out
