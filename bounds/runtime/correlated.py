"""Step times that are not independent: workers of different speed, and slow steps followed by slow ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .checks import nonnegative, positive, positive_integer
from .convolution import LatticeSum, lattice_pair
from .law import Law, StepTime
from .laws import LogNormal
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


@dataclass(frozen=True)
class AutoregressiveLogNormal(StepTime):
    """log Y is a stationary Gaussian AR(1) process for every worker, independent between workers.

    Parameters
    ----------
    mean : float
        Of one step, in seconds, > 0.
    log_sd : float
        Standard deviation of log Y, > 0.
    correlation : float
        rho of successive log Y, 0 <= rho < 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    The mean of tau steps is taken as log-normal with its exact mean and variance: exact at tau = 1, elsewhere within
    .6 % of the simulated expected maximum for log_sd <= .5, m <= 64, rho <= .99, and 2 % low for log_sd = 1, m = 64.
    Var of the mean is inflated by about (1 + rho)/(1 - rho) against independent steps.
    """

    mean: float
    log_sd: float
    correlation: float

    def __post_init__(self) -> None:
        positive("mean", self.mean)
        positive("log_sd", self.log_sd)
        if not 0 <= self.correlation < 1:
            raise ValueError(f"correlation must satisfy 0 <= rho < 1; got correlation = {self.correlation}")

    @property
    def mean_s(self) -> float:
        return self.mean

    def sd_of_mean_s(self, tau: int) -> float:
        """Return standard deviation of the mean of tau successive steps of one worker, in seconds; exact.

        Cov(Y_j, ``Y_k) = mean^2 (exp(log_sd^2 rho^|j-k|) - 1``).

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        """
        tau = positive_integer("tau", tau)
        lag = np.arange(tau)
        pairs = np.where(lag == 0, tau, 2.0 * (tau - lag))
        covariance = np.expm1(self.log_sd**2 * self.correlation**lag)
        return self.mean * math.sqrt(float(pairs @ covariance)) / tau

    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Return E max over m workers of the mean of tau steps, in seconds a step, by the matched log-normal law."""
        return LogNormal.from_moments(self.mean, self.sd_of_mean_s(tau)).expected_max(m=m)

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return E max of m sums and a fixed time, in seconds: exact at tau = 1, else by the matched log-normal law."""
        total = LogNormal.from_moments(tau * self.mean, tau * self.sd_of_mean_s(tau))
        return total.expected_max_above(floor_s, m=m)
