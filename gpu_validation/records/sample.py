"""Summaries of numbers, from which intervals are computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

ATOMS = 64  # largest number of groups in a sample
Atom = tuple[float, float, int]


@dataclass(frozen=True)
class Sample:
    """Summary of n numbers: mean, standard deviation, extremes, and groups of equal or close values.

    Parameters
    ----------
    n : int
        Number of draws.
    mean : float
        Mean.
    sd : float
        Standard deviation with n - 1 degrees of freedom.
    low : float
        Minimum.
    high : float
        Maximum.
    atoms : tuple of Atom, optional
        (smallest, largest, count) of each group, ascending; intervals are computed from them.
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float
    atoms: tuple[Atom, ...] = ()

    @classmethod
    def of(cls, values: Any) -> Sample:
        """Summarise at least one number.

        Parameters
        ----------
        values
            Array or sequence of numbers.  Infinite ones make the standard deviation infinite.

        Raises
        ------
        ValueError
            For no numbers, for nan, and for infinities of both signs, which have no mean.
        """
        array = np.asarray(values, float)
        if array.size == 0:
            raise ValueError("a sample must have at least one number; got none: leave it out")
        low, high = float(array.min()), float(array.max())
        if math.isnan(low) or (low, high) == (-math.inf, math.inf):
            raise ValueError(f"a sample must have a mean; got numbers from {low} to {high}: remove nan and infinities")
        atoms = _grouped(np.sort(array, axis=None))
        if math.isinf(low) or math.isinf(high):
            return cls(int(array.size), low if math.isinf(low) else high, math.inf, low, high, atoms)
        sd = float(array.std(ddof=1)) if array.size > 1 else 0.0
        mean = min(max(float(array.mean()), low), high)  # the rounded mean of equal numbers may lie outside
        return cls(int(array.size), mean, sd, low, high, atoms)


def _grouped(ascending: np.ndarray) -> tuple[Atom, ...]:
    """Merge equal numbers into groups; if more than ATOMS remain, merge them in cells of equal width."""
    values, counts = np.unique(ascending, return_counts=True)
    if values.size > ATOMS and np.isfinite(values).all():
        cells = np.minimum((ATOMS * ((values - values[0]) / (values[-1] - values[0]))).astype(int), ATOMS - 1)
    else:
        cells = np.arange(values.size)
    firsts = np.flatnonzero(np.diff(cells, prepend=-1))
    lasts = np.append(firsts[1:], values.size) - 1
    totals = np.add.reduceat(counts, firsts)
    return tuple((float(values[i]), float(values[j]), int(n)) for i, j, n in zip(firsts, lasts, totals, strict=True))
