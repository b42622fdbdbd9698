"""Rice code of the gaps of a support: the parameter in 5 bits, then unary quotient and binary remainder."""

from __future__ import annotations

import numba
import numpy as np

from ..bitstream import put, window

PARAMETER_BITS = 5
_MOST = 31


@numba.njit(cache=True, nogil=True)
def cost(gaps, r):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bits of the gaps at parameter r."""
    total = gaps.size * (1 + r)
    for g in gaps:
        total += g >> r
    return total


@numba.njit(cache=True, nogil=True)
def best_parameter(gaps, span):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(r, bits) of the least r that minimises the cost, which is unimodal in r; ``span`` is a start for d."""
    r, ratio = 0, span // max(gaps.size, 1)
    while ratio > 2 and r < _MOST:
        ratio >>= 1
        r += 1
    bits = cost(gaps, r)
    while r < _MOST:
        after = cost(gaps, r + 1)
        if after >= bits:
            break
        r, bits = r + 1, after
    while r > 0:
        before = cost(gaps, r - 1)
        if before > bits:
            break
        r, bits = r - 1, before
    return r, bits


@numba.njit(cache=True, nogil=True)
def write(gaps, r, out, state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Append all gaps; returns the new state of the stream."""
    low = (1 << r) - 1
    for g in gaps:
        ones = g >> r
        while ones >= 32:
            state = put(out, state, 0xFFFFFFFF, 32)
            ones -= 32
        state = put(out, state, (1 << ones) - 1, ones)
        state = put(out, state, 0, 1)
        state = put(out, state, g & low, r)
    return state


@numba.njit(cache=True, nogil=True)
def read(padded, position, bits, r, d, index):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill ``index`` with increasing positions below d; returns the next bit position, or -1 if corrupt."""
    last = -1
    for j in range(index.size):
        quotient = 0
        while True:
            if position >= bits:
                return -1
            if not window(padded, position) >> np.uint64(63):
                break
            quotient += 1
            position += 1
            if (quotient << r) >= d:
                return -1
        position += 1
        if position + r > bits:
            return -1
        low = np.int64(window(padded, position) >> np.uint64(64 - r)) if r > 0 else 0
        position += r
        last += (quotient << r) + low + 1
        if last >= d:
            return -1
        index[j] = last
    return position
