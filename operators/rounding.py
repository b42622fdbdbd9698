"""Stochastic rounding of scaled magnitudes with one 32-bit word a coordinate."""

from __future__ import annotations

import numba
import numpy as np

UNIT = 2.0**-32  # a word times UNIT is uniform on [0, 1) in steps of UNIT: rounding is biased by at most UNIT


@numba.njit(cache=True, nogil=True)
def stochastic_levels(x, numerator, denominator, words, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Signed levels sign(x) floor(numerator |x| / denominator + u), int32; largest |level| below 2^31."""
    for i in range(x.size):
        a = numerator * np.float64(abs(x[i])) / denominator
        level = np.int32(np.floor(a + np.float64(words[i]) * UNIT))
        out[i] = -level if x[i] < 0 else level
