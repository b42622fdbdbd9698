"""Workers of different speed: the straggling that no averaging over steps removes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .checks import nonnegative, positive, positive_integer
from .convolution import LatticeSum, lattice_pair
from .law import Law, StepTime
from .quadrature import expected_max_scaled


@dataclass(frozen=True, init=False)
class PersistentStragglers(StepTime):
    """Worker i needs slowdowns[i] times the law's time for each of its steps, independently over steps.

    Parameters
    ----------
    law : Law
        Of a step at slowdown 1.
    slowdowns : sequence of float
        One factor > 0 for each of the m workers.

    Raises
    ------
    ValueError
        For no factor or one that is not positive.

    Notes
    -----
    As tau grows the expected maximum tends to max(slowdowns) times the mean, not to the mean.
    """

    law: Law
    slowdowns: tuple[float, ...]

    def __init__(self, law: Law, slowdowns: Sequence[float]) -> None:
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "slowdowns", tuple(positive("each slowdown", value) for value in slowdowns))
        if not self.slowdowns:
            raise ValueError("slowdowns needs one factor for each worker; got none")

    @property
    def mean_s(self) -> float:
        """The law's mean times the mean slowdown."""
        return self.law.mean_s * float(np.mean(self.slowdowns))

    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Return E max over the workers of the mean of tau steps, in seconds a step.

        Raises
        ------
        ValueError
            Unless m is the number of slowdowns and tau >= 1.
        """
        scales, counts = self.groups(m)
        tau = positive_integer("tau", tau)
        if self.law.mean_s == np.inf:
            return np.inf
        total = self.law.sum_law(tau)
        if total is not None:
            return expected_max_scaled(total, scales, counts) / tau
        fine, coarse = (_lattice_max(total, scales, counts) for total in lattice_pair(self.law, tau))
        return float(4 * fine - coarse) / 3 / tau

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return E max(slowdowns[i] S_i, floor_s), in seconds."""
        scales, counts = self.groups(m)
        tau, floor_s = positive_integer("tau", tau), nonnegative("floor_s", floor_s)
        total = self.law.sum_law(tau)
        if total is not None:
            return expected_max_scaled(total, scales, counts, floor_s)
        longest_s = tau * self.expected_max(m=m, tau=tau)
        if longest_s == np.inf:
            return np.inf
        fine, _ = lattice_pair(self.law, tau)
        return max(floor_s, longest_s + _waiting_below(fine, scales, counts, floor_s))

    def groups(self, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct slowdowns and how many workers have each.

        Parameters
        ----------
        m : int
            Number of workers; 1 <= m, an integer.
        """
        if positive_integer("m", m) != len(self.slowdowns):
            raise ValueError(f"m must be the number of slowdowns, {len(self.slowdowns)}; got m = {m}")
        return np.unique(self.slowdowns, return_counts=True)


def _lattice_max(total: LatticeSum, scales: np.ndarray, counts: np.ndarray) -> float:
    """Return E of the largest of the scaled sums by the midpoint rule in cells of the lattice of the slowest worker."""
    slowest = float(scales.max())
    start, end = slowest * total.offset_s, slowest * total.end_s
    width = slowest * total.width_s
    t = start + width * (np.arange(total.tail.size) + 0.5)
    log_f = sum(c * np.log1p(-np.minimum(total.sf(t / s), 1 - 2.0**-53)) for s, c in zip(scales, counts, strict=True))
    beyond = sum(c * s * total.excess_beyond(end / s) for s, c in zip(scales, counts, strict=True))
    return start + width * float(-np.expm1(log_f).sum()) + float(beyond)


def _waiting_below(total: LatticeSum, scales: np.ndarray, counts: np.ndarray, floor_s: float) -> float:
    """Return E max(floor_s - largest scaled sum, 0), in seconds, by the midpoint rule."""
    start = float(scales.max()) * total.offset_s
    if floor_s <= start:
        return 0.0
    width = (floor_s - start) / total.tail.size
    t = start + width * (np.arange(total.tail.size) + 0.5)
    log_f = sum(c * np.log1p(-np.minimum(total.sf(t / s), 1 - 2.0**-53)) for s, c in zip(scales, counts, strict=True))
    return width * float(np.exp(log_f).sum())
