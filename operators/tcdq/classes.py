"""Magnitudes by context: the class of every block, and the encoder's histograms."""

from __future__ import annotations

import numba
import numpy as np

from .model import BLOCK
from .rans import magnitude, split


@numba.njit(inline="always")
def _sum(symbols, block, low):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(sum of magnitudes, sum of their squares) of a block, in 1/64 spacings."""
    total, square = 0, 0.0
    for i in range(BLOCK * block, min(BLOCK * block + BLOCK, symbols.size)):
        k, phase, _ = split(symbols[i], low)
        j = magnitude(k, phase)
        total += j
        square += (j + 0.5) * (j + 0.5)
    return total, square


@numba.njit(cache=True, nogil=True)
def classify(symbols, low, thresholds, classes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill the class of every block from the block before it; returns the sum of all squared magnitudes."""
    past, energy = 0, 0.0
    for block in range(classes.size):
        c = 0
        while c < thresholds.size and past >= thresholds[c]:
            c += 1
        classes[block] = c
        past, square = _sum(symbols, block, low)
        energy += square
    return energy


@numba.njit(cache=True, nogil=True)
def histogram(symbols, low, thresholds, levels, stride, counts):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Levels of magnitude by class in every ``stride``-th block; returns their sum of squared magnitudes."""
    energy = 0.0
    for block in range(0, (symbols.size + BLOCK - 1) // BLOCK, stride):
        past, _ = _sum(symbols, block - 1, low) if block else (0, 0.0)
        c = np.searchsorted(thresholds, past, side="right")
        for i in range(BLOCK * block, min(BLOCK * block + BLOCK, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j, more = magnitude(k, phase), 0
            energy += (j + 0.5) * (j + 0.5)
            while j >= levels.size:
                j >>= 1
                more += 8
            counts[c, levels[j] + more] += 1
    return energy
