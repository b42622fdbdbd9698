"""Unsigned numbers of one width, most significant bit first, without gaps."""

from __future__ import annotations

import numba
import numpy as np

from ..bitstream import words


@numba.njit(cache=True, nogil=True)
def _pack(values, width, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The accumulator holds fewer than 32 bits between values; ``out`` has spare bytes up to a whole word."""
    acc, filled, at = np.uint64(0), 0, 0
    step = np.uint64(width)
    for v in values:
        acc = (acc << step) | np.uint64(v)
        filled += width
        if filled >= 32:
            filled -= 32
            word = acc >> np.uint64(filled)
            out[at] = np.uint8(word >> np.uint64(24))
            out[at + 1] = np.uint8(word >> np.uint64(16))
            out[at + 2] = np.uint8(word >> np.uint64(8))
            out[at + 3] = np.uint8(word)
            at += 4
    word = acc << np.uint64(32 - filled)
    for shift in range(24, 24 - filled, -8):
        out[at] = np.uint8(word >> np.uint64(shift))
        at += 1


@numba.njit(cache=True, nogil=True)
def _unpack(words, width, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    position, drop = 0, np.uint64(64 - width)
    for i in range(out.size):
        at = position >> 5
        w = ((np.uint64(words[at]) << np.uint64(32)) | np.uint64(words[at + 1])) << np.uint64(position & 31)
        out[i] = np.uint32(w >> drop)
        position += width


def pack_fixed(values: np.ndarray, width: int) -> np.ndarray:
    """ceil(n width / 8) bytes, zero-padded.  values : uint32, shape (n,), each below 2^width; width : 1 .. 32."""
    out = np.empty((values.size * width + 7) // 8, np.uint8)
    _pack(values, width, out)
    return out


def unpack_fixed(payload: np.ndarray, width: int, n: int) -> np.ndarray:
    """uint32 array, shape (n,); the payload has at least n width bits, width 1 .. 32."""
    out = np.empty(n, np.uint32)
    _unpack(words(payload), width, out)
    return out
