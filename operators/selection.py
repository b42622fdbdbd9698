"""Exact selection of the largest magnitudes in three passes, by a histogram of their bit patterns."""

from __future__ import annotations

import numba
import numpy as np

SMALL = 8192  # below it a stable sort is faster than two histograms


@numba.njit(cache=True, nogil=True)
def _critical(histogram, k):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(bin that holds the k-th largest, how many of that bin are wanted)."""
    left = k
    for b in range(histogram.size - 1, -1, -1):
        if histogram[b] >= left:
            return b, left
        left -= histogram[b]
    return 0, 0


@numba.njit(cache=True, nogil=True)
def _select(patterns, k, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    magnitude = np.uint32(0x7FFFFFFF)
    high = np.zeros(1 << 15, np.int64)
    for p in patterns:
        high[(p & magnitude) >> np.uint32(16)] += 1
    top, wanted = _critical(high, k)
    low = np.zeros(1 << 16, np.int64)
    for p in patterns:
        if (p & magnitude) >> np.uint32(16) == top:
            low[p & np.uint32(0xFFFF)] += 1
    bottom, ties = _critical(low, wanted)
    threshold = np.uint32((top << 16) | bottom)
    j = 0
    for i in range(patterns.size):
        m = patterns[i] & magnitude
        if m > threshold:
            out[j] = i
            j += 1
        elif m == threshold and ties > 0:
            out[j] = i
            j += 1
            ties -= 1


def largest_indices(x: np.ndarray, k: int) -> np.ndarray:
    """Increasing int64 positions of the k largest |x|, 1 <= k <= d; ties go to the lower index."""
    if x.size < SMALL:
        return np.sort(np.argsort(-np.abs(x), kind="stable")[:k])
    out = np.empty(k, np.int64)
    _select(x.view(np.uint32), k, out)
    return out
