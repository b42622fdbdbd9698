"""What a law of compute time must offer: its moments, its tail, samples, and the expected maximum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np

from .checks import nonnegative, positive_integer
from .convolution import expected_max_of_sum, split_tail
from .distribution import Distribution
from .nested_lattices import expected_max_of_heavy_sum, waiting_below
from .quadrature import expected_max_of, gauss_legendre


class StepTime(ABC):
    """The time of one local step on each of m workers."""

    @property
    @abstractmethod
    def mean_s(self) -> float:
        """Mean time of one step of an average worker, in seconds."""

    @abstractmethod
    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Return expected maximum over m workers of the mean of tau steps, in seconds a step.

        Parameters
        ----------
        m : int
            Number of workers, >= 1.
        tau : int, optional
            Steps of which the mean is taken, >= 1.

        Raises
        ------
        ValueError
            For other arguments.

        Notes
        -----
        It never grows with tau, which the search for the best tau relies on: for independent steps the mean of tau + 1
        is the average of its leave-one-out means, and the maximum is convex.
        """

    @abstractmethod
    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return E max(S_1, ..., S_m, floor_s): the longest of m sums of tau steps and a fixed time, in seconds.

        Parameters
        ----------
        floor_s : float, seconds
            A fixed time beside the steps, in seconds, >= 0.
        m : int
            Number of workers; 1 <= m, an integer.
        tau : int, optional
            Steps of each worker, >= 1.
        """


class Law(StepTime, Distribution):
    """A law of one step's time, drawn independently for every step and worker; a frozen dataclass.

    Times are in seconds and never negative.
    """

    @property
    @abstractmethod
    def skewness(self) -> float:
        """Third standardised moment; infinite if it does not exist, 0 for a constant."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return independent draws in seconds; the caller's generator is advanced.

        Parameters
        ----------
        rng : numpy Generator
            Source of randomness; it is advanced.
        shape : tuple of int
            Shape of the array that is returned.
        """

    def sum_law(self, tau: int) -> Law | None:
        """Return the law of the sum of tau steps where it is in the package, else None (then FFT is used).

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        """
        return self if tau == 1 else None

    def lattice(self, width_s: float, cells: int) -> np.ndarray:
        """Return masses at lower_s, lower_s + width_s, ..., shape (cells,), from averages of the tail over
        the cells.
        """
        return split_tail(self, width_s, cells)

    def single_max(self, m: int) -> float:
        """Return expected maximum of m single draws: a closed form where there is one, else quadrature.

        Parameters
        ----------
        m : int
            Number of workers; 1 <= m, an integer.
        """
        return expected_max_of(self, m)

    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Return expected maximum over m workers of the mean of tau independent steps, in seconds a step.

        Closed form, else quadrature of 1 - F^m, else FFT convolution; infinite if the mean is.  Non-increasing in tau
        with limit ``mean_s``.

        Raises
        ------
        ValueError
            Unless m and tau are integers >= 1.
        """
        return _expected_max(self, positive_integer("m", m), positive_integer("tau", tau))

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return E max(S_1, ..., S_m, floor_s), in seconds; infinite if the mean is."""
        m, tau = positive_integer("m", m), positive_integer("tau", tau)
        floor_s = nonnegative("floor_s", floor_s)
        if floor_s <= tau * self.lower_s or self.mean_s == np.inf:
            return tau * self.expected_max(m=m, tau=tau)
        total = self.sum_law(tau)
        if total is not None:
            return expected_max_of(total, m, floor_s=floor_s)
        if floor_s >= tau * self.upper_s:
            return floor_s
        return max(floor_s, tau * self.expected_max(m=m, tau=tau) + waiting_below(self, tau, m, floor_s))


@lru_cache(maxsize=1024)
def _expected_max(law: Law, m: int, tau: int) -> float:
    if m == 1 or law.mean_s == np.inf:
        return law.mean_s
    total = law.sum_law(tau)
    if total is not None:
        return float(total.single_max(m)) / tau
    if law.sd_s == np.inf:
        return expected_max_of_heavy_sum(law, tau, m) / tau
    return float(expected_max_of_sum(law, tau, m)) / tau


REACH = 40.0  # the normal density underflows beyond
PANELS = 160


@lru_cache(maxsize=256)
def normal_max_moment(m: int, order: int = 1) -> float:
    """Return E Z^order of the maximum Z of m independent standard normal variables, order 1 or 2.

    The integral of z^order m phi(z) Phi(z)^(m-1) by Gauss-Legendre panels.

    Parameters
    ----------
    m : int
        Number of workers; 1 <= m, an integer.
    order : int, optional
        Which moment of the maximum.

    Raises
    ------
    ValueError
        For m < 1.
    """
    from scipy.special import log_ndtr

    m = positive_integer("m", m)
    nodes, weights = gauss_legendre(40)
    edges = np.linspace(-REACH, REACH, PANELS + 1)
    z = edges[:-1, None] + np.diff(edges)[:, None] * nodes
    log_density = math.log(m) - z**2 / 2 - math.log(2 * math.pi) / 2 + (m - 1) * log_ndtr(z)
    return float(np.sum(np.diff(edges) * ((z**order * np.exp(log_density)) @ weights)))


def approximate_expected_max(law: Law, *, m: int, tau: int) -> float:
    """Return E max of the mean of tau steps by the central limit theorem with a skewness term, in seconds.

    mean + sd/sqrt(tau) [e_m + skewness/(6 sqrt(tau)) (E Z_{m:m}^2 - 1)]: within 1.1 % for exponential steps at tau =
    4..10, m = 16..64 (4.6-15 % low without the skewness term), useless for heavy tails.

    Parameters
    ----------
    law : Law
        Law of one step's time.
    m : int
        Number of workers; 1 <= m, an integer.
    tau : int
        Local steps between two averagings.

    Raises
    ------
    ValueError
        If the skewness does not exist.
    """
    m, tau = positive_integer("m", m), positive_integer("tau", tau)
    if not math.isfinite(law.skewness):
        raise ValueError(f"the approximation needs a third moment; {law} has none: use expected_max")
    skew = law.skewness / (6 * math.sqrt(tau)) * (normal_max_moment(m, 2) - 1)
    return law.mean_s + law.sd_s / math.sqrt(tau) * (normal_max_moment(m) + skew)
