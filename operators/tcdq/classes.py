"""Magnitudes by context: the class of every row of coordinates, and the encoder's histograms.

A row is one coordinate of each stream: 16 in the long format, one in the short.  Its class follows from a running
sum of decoded magnitudes in which each coordinate has lost 1/16 of its weight for every later one (in the long
format: all of it after the next row).
"""

from __future__ import annotations

from ..compilation import jit
from .rans import magnitude, split


@jit(inline="always")
def next_class(c, energy, thresholds):
    """Return the number of thresholds that do not exceed ``energy``, searched from c: it seldom moves far."""
    while c < thresholds.size and energy >= thresholds[c]:
        c += 1
    while c > 0 and energy < thresholds[c - 1]:
        c -= 1
    return c


@jit(inline="always")
def decay_energy(energy, total, width):
    """Return the running sum after a row of ``width`` coordinates whose magnitudes add to ``total``."""
    return energy - (energy * width >> 4) + total


@jit(inline="always")
def _sum(symbols, row, width, low):
    """Sum of the magnitudes of a row, in 1/64 spacings."""
    total = 0
    for i in range(width * row, min(width * row + width, symbols.size)):
        k, phase, _ = split(symbols[i], low)
        total += magnitude(k, phase)
    return total


@jit
def classify(symbols, low, thresholds, width, classes):
    """Fill the class of every row from those before it; returns the sum of (2 j + 1)^2 over all magnitudes j.

    It is below 2^63, since ``|x|/step`` is below 2^25.1, sqrt(d) at most 2^16 and no error above 2.
    """
    energy, squares, c = 0, 0, 0
    for row in range(classes.size):
        c = next_class(c, energy, thresholds)
        classes[row] = c
        total = 0
        for i in range(width * row, min(width * row + width, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j = magnitude(k, phase)
            total += j
            squares += (2 * j + 1) * (2 * j + 1)
        energy = decay_energy(energy, total, width)
    return squares


@jit
def histogram(symbols, low, thresholds, width, stride, levels, counts):
    """Return levels of magnitude by class in every ``stride``-th row; returns their sum of squared magnitudes.

    A stride above 1 needs rows of 16, whose class depends on one row alone.
    """
    squares, energy, c = 0.0, 0, 0
    for row in range(0, (symbols.size + width - 1) // width, stride):
        if stride > 1 and row:
            energy = _sum(symbols, row - 1, width, low)
        c = next_class(c, energy, thresholds)
        total = 0
        for i in range(width * row, min(width * row + width, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j, more = magnitude(k, phase), 0
            total += j
            squares += (j + 0.5) * (j + 0.5)
            while j >= levels.size:
                j >>= 1
                more += 8
            counts[c, levels[j] + more] += 1
        energy = decay_energy(energy, total, width)
    return squares
