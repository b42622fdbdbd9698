"""Ternary digits, five to a byte; a last group of 1, 2, 3, 4 digits takes 2, 4, 5, 7 bits."""

from __future__ import annotations

import numba
import numpy as np

TAIL_BITS = (0, 2, 4, 5, 7)


def trit_bits(n: int) -> int:
    """Bits of n digits."""
    return 8 * (n // 5) + TAIL_BITS[n % 5]


@numba.njit(cache=True, nogil=True)
def pack_trits(levels, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Digits 0, 1, 2 for levels 0, +1, -1; the first digit of a group is its lowest; tail left-aligned."""
    whole = levels.size // 5
    for j in range(whole):
        byte = 0
        for i in range(4, -1, -1):
            n = levels[5 * j + i]
            byte = 3 * byte + (2 if n < 0 else n)
        out[j] = byte
    rest = levels.size - 5 * whole
    if rest:
        byte = 0
        for i in range(rest - 1, -1, -1):
            n = levels[5 * whole + i]
            byte = 3 * byte + (2 if n < 0 else n)
        out[whole] = byte << (8 - TAIL_BITS[rest])


@numba.njit(cache=True, nogil=True)
def unpack_trits(payload, scale, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill ``out`` with scale times levels; returns the number of non-zeros, -1 for an impossible group."""
    total, rest = np.int64(0), out.size % 5
    for j in range((out.size + 4) // 5):
        byte, digits = np.int64(payload[j]), 5
        if 5 * j + 5 > out.size:
            byte, digits = byte >> (8 - TAIL_BITS[rest]), rest
        for i in range(digits):
            digit = byte % 3
            byte //= 3
            total += digit > 0
            out[5 * j + i] = scale if digit == 1 else (-scale if digit == 2 else np.float32(0))
        if byte:
            return -1
    return total
