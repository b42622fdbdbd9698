"""Elias omega code of the integers 1 .. 2^40 (Elias 1975)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..compilation import jit


@jit
def _bit_length(n):
    length = 0
    while n:
        n >>= 1
        length += 1
    return length


@jit
def build(n):
    """Return (code, length in bits) of n >= 1: a final 0, then binary numbers prepended until 1 is reached."""
    code, length = np.uint64(0), 1
    while n > 1:
        width = _bit_length(n)
        code |= np.uint64(n) << np.uint64(length)
        length += width
        n = width - 1
    return code, length


def build_each(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes (uint64) and their lengths (int64) of many numbers, as ``build`` does one by one.

    Parameters
    ----------
    numbers : ndarray, shape (n,)
        int64, each at least 1.
    """
    rest, codes, lengths = numbers.copy(), np.zeros(numbers.size, np.uint64), np.ones(numbers.size, np.int64)
    while (longer := rest > 1).any():
        widths = np.where(longer, np.frexp(rest.astype(np.float64))[1], 0)
        codes |= np.where(longer, rest, 0).astype(np.uint64) << lengths.astype(np.uint64)
        lengths += widths
        rest = np.where(longer, widths - 1, 1)
    return codes, lengths


@jit
def length(n):
    """Return bits of the code of n >= 1."""
    total = 1
    while n > 1:
        width = _bit_length(n)
        total += width
        n = width - 1
    return total


@jit
def parse(window):
    """Return (n, length) of the code at the top of a 64-bit window; length 0 if there is none within 57 bits."""
    n, used = np.int64(1), np.int64(0)
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


@jit
def lengths_up_to(n):
    """Return bits of the codes of 1 .. n: float64, shape (n,)."""
    out = np.empty(n)
    for i in range(n):
        out[i] = length(i + 1)
    return out


@lru_cache(maxsize=256)
def majorant(span: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (n, bits) of the least concave majorant of the code length on 1 .. span.

    The length jumps at powers of two only, so they and the end carry the majorant.
    """
    points = [1 << j for j in range(span.bit_length())]
    hull: list[tuple[int, int]] = []
    for n in [*points, span] if points[-1] != span else points:
        now = (n, int(length(n)))
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], now):
            hull.pop()
        hull.append(now)
    vertices = np.array(hull, float)
    return vertices[:, 0], vertices[:, 1]


def _slope(p: tuple[int, int], q: tuple[int, int]) -> float:
    return (q[1] - p[1]) / (q[0] - p[0])


def gap_intercept(price: float, d: int) -> float:
    """Return bits of k + 1 gaps that sum to d + 1 are at most price k + this, for every 0 <= k <= d (Jensen).

    (k + 1) M((d + 1)/(k + 1)), M the concave majorant, is concave and piecewise linear in k; the largest
    excess over price k lies at a break point.
    """
    n, bits = majorant(d + 1)
    k = (d + 1) / n - 1
    return float(((k + 1) * bits - price * k).max())
