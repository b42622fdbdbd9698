"""Elias omega code of the integers 1 .. 2^40 (Elias 1975)."""

from __future__ import annotations

import numba
import numpy as np

LARGEST_BITS = 41  # of a coded integer; its code then fits 64 bits
_TABLE = 1024


@numba.njit(cache=True, nogil=True)
def _bit_length(n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    length = 0
    while n:
        n >>= 1
        length += 1
    return length


@numba.njit(cache=True, nogil=True)
def build(n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(code, length in bits) of n >= 1: a final 0, then binary numbers prepended until 1 is reached."""
    code, length = np.uint64(0), 1
    while n > 1:
        width = _bit_length(n)
        code |= np.uint64(n) << np.uint64(length)
        length += width
        n = width - 1
    return code, length


_CODES = np.zeros(_TABLE, np.uint64)
_LENGTHS = np.zeros(_TABLE, np.int64)


@numba.njit(cache=True, nogil=True)
def _fill_table(codes, lengths):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for n in range(1, codes.size):
        codes[n], lengths[n] = build(n)


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Codes and lengths of 1 .. 1023; entry 0 is unused."""
    if not _LENGTHS[1]:
        _fill_table(_CODES, _LENGTHS)
    return _CODES, _LENGTHS


@numba.njit(cache=True, nogil=True)
def length(n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bits of the code of n >= 1."""
    total = 1
    while n > 1:
        width = _bit_length(n)
        total += width
        n = width - 1
    return total


@numba.njit(cache=True, nogil=True)
def parse(window):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(n, length) of the code at the top of a 64-bit window; length 0 if there is none within 57 bits."""
    n, used = 1, 0
    while True:
        if used > 56:
            return 0, 0
        if not (window >> np.uint64(63 - used)) & np.uint64(1):
            return n, used + 1
        width = n + 1
        if width > 41 or used + width > 56:
            return 0, 0
        n = np.int64((window << np.uint64(used)) >> np.uint64(64 - width))
        used += width


def lengths(n: np.ndarray) -> np.ndarray:
    """Bits of the codes of an integer array, elementwise."""
    return np.array([length(int(v)) for v in np.asarray(n).reshape(-1)], np.int64).reshape(np.shape(n))
