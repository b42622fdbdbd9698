"""Summaries of numbers and messages, and the claims and sizes of operators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounds.claims import Claim, Contractive, NoClaim, Unbiased
from operators import Size

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


@dataclass(frozen=True)
class Declared:
    """Claim and message length of an operator at this d.

    Parameters
    ----------
    kind : str
        Class of the claim.
    constant : float or None
        omega or alpha of the claim; None without one.
    exact_bits : int or None, bits
        Length of every message, as in ``Size``.
    expected_upper_bits : float or None, bits
        Upper bound on the mean length, as in ``Size``.
    worst_case_bits : float or None, bits
        Upper bound on every length, as in ``Size``.
    reason : str, optional
        Reason of a missing claim.
    are_stated : bool, optional
        Whether the lengths of the messages are those that a function states, so that nothing was counted.
    """

    kind: str
    constant: float | None
    exact_bits: int | None
    expected_upper_bits: float | None
    worst_case_bits: float | None
    reason: str = ""
    are_stated: bool = False

    @classmethod
    def of(cls, claim: Claim, size: Size, *, are_stated: bool = False) -> Declared:
        """Make one from a claim and a size.

        Parameters
        ----------
        claim : Claim
            Claim of the operator.
        size : Size
            Declared length of its messages.
        are_stated : bool, optional
            Whether the lengths of the messages are those that a function states.
        """
        constant = {Unbiased: "omega", Contractive: "alpha"}
        value = next((getattr(claim, name) for kind, name in constant.items() if isinstance(claim, kind)), None)
        reason = claim.reason if isinstance(claim, NoClaim) else ""
        return cls(type(claim).__name__, value, size.exact, size.expected_upper, size.worst_case, reason, are_stated)


@dataclass(frozen=True)
class Compression:
    """Measurements of one operator's messages on one kind of input.

    Parameters
    ----------
    source : str
        Kind of input.
    d : int
        Number of coordinates.
    declared : Declared
        Claim and size of the operator at d.
    bits : Sample, bits
        Message lengths.
    ratio : Sample
        Squared error over squared norm, one number per message.
    error_per_coordinate : Sample
        Squared error / d; for inputs of unit variance this is the distortion.
    """

    source: str
    d: int
    declared: Declared
    bits: Sample
    ratio: Sample
    error_per_coordinate: Sample
