"""Means of vectors on the CPU in compiled code, the same bits as plain float64 arithmetic in rank order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

PIECE = 1 << 13  # entries whose float64 sum stays in a core's first cache


def fold_arrays(parts: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Put the mean of at least two vectors, float32 or float64, shape (d,), into ``out``.

    They are summed one after the other in float64; the sum is divided by their number and rounded once.
    """
    first, *between, last = parts
    if not between:
        _close(first, last, float(len(parts)), out)
        return
    total = np.empty(min(PIECE, out.size))
    for at in range(0, out.size, PIECE):
        here = slice(at, min(at + PIECE, out.size))
        sums = total[: here.stop - at]
        _add(first[here], between[0][here], sums)
        for part in between[1:]:
            _add(sums, part[here], sums)
        _close(sums, last[here], float(len(parts)), out[here])


@numba.njit(cache=True, nogil=True)
def _add(a, b, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for i in range(out.size):
        out[i] = np.float64(a[i]) + np.float64(b[i])


@numba.njit(cache=True, nogil=True)
def _close(a, b, count, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    scale = 1 / count
    if math.frexp(count)[0] == 0.5:  # a power of two: a product is as exact and takes two thirds of the time
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i])) * scale
    else:
        for i in range(out.size):
            out[i] = (np.float64(a[i]) + np.float64(b[i])) / count
