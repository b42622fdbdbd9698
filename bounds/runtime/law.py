"""What a law of compute time must offer: its moments, its tail, samples, and the expected maximum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np

from .checks import nonnegative, positive_integer


class StepTime(ABC):
    """The time of one local step on each of m workers."""

    @property
    @abstractmethod
    def mean_s(self) -> float:
        """Mean time of one step of an average worker, in seconds."""

    @abstractmethod
    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Expected maximum over m workers of the mean of tau steps, in seconds a step.

        m, tau : integers >= 1.  Never grows with tau, which the search for the best tau relies on: for independent
        steps the mean of tau + 1 is the average of its leave-one-out means, and the maximum is convex.
        Raises ValueError for other arguments.
        """

    @abstractmethod
    def expected_max_above(self, floor_s: float, *, m: int) -> float:
        """E max(Y_1, ..., Y_m, floor_s): the maximum of m single steps and a fixed time, in seconds."""


class Law(StepTime):
    """A law of one step's time, drawn independently for every step and worker; a frozen dataclass.

    Times are in seconds and never negative.
    """

    @property
    @abstractmethod
    def sd_s(self) -> float:
        """Standard deviation of one step, in seconds; infinite if the variance is."""

    @property
    @abstractmethod
    def skewness(self) -> float:
        """Third standardised moment; infinite if it does not exist, 0 for a constant."""

    @property
    def lower_s(self) -> float:
        """The left end of the support, in seconds."""
        return 0.0

    @property
    def upper_s(self) -> float:
        """The right end of the support, in seconds."""
        return np.inf

    @abstractmethod
    def sf(self, t: Any) -> np.ndarray:
        """P(Y > t), accurate in relative terms in the far tail; t in seconds, any shape."""

    @abstractmethod
    def excess(self, t: float) -> float:
        """E max(Y - t, 0), the integral of the tail from t on, in seconds; t >= ``lower_s``."""

    @abstractmethod
    def quantile(self, tail: float) -> float:
        """The time that is exceeded with probability ``tail``, 0 < tail < 1."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent draws in seconds; the caller's generator is advanced."""

    def sum_law(self, tau: int) -> Law | None:
        """The law of the sum of tau steps where it is in the package, else None (then FFT is used)."""
        return self if tau == 1 else None

    def lattice(self, width_s: float, cells: int) -> np.ndarray:
        """Masses at lower_s, lower_s + width_s, ..., shape (cells,), with the mean of the law kept.

        Every infinitesimal mass goes to its two neighbours in proportion; what lies beyond is left out.
        """
        from .convolution import split_tail

        return split_tail(self, width_s, cells)

    def single_max(self, m: int) -> float:
        """Expected maximum of m single draws: a closed form where there is one, else quadrature."""
        from .quadrature import expected_max_of

        return expected_max_of(self, m)

    def expected_max(self, *, m: int, tau: int = 1) -> float:
        """Expected maximum over m workers of the mean of tau independent steps, in seconds a step.

        Closed form, else quadrature of 1 - F^m, else FFT convolution; infinite if the mean is.  Non-increasing
        in tau with limit ``mean_s``.  Raises ValueError unless m and tau are integers >= 1.
        """
        return _expected_max(self, positive_integer("m", m), positive_integer("tau", tau))

    def expected_max_above(self, floor_s: float, *, m: int) -> float:
        """E max(Y_1, ..., Y_m, floor_s), in seconds; infinite if the mean is."""
        from .quadrature import expected_max_of

        m, floor_s = positive_integer("m", m), nonnegative("floor_s", floor_s)
        if floor_s <= self.lower_s or self.mean_s == np.inf:
            return self.expected_max(m=m)
        return expected_max_of(self, m, floor_s=floor_s)


@lru_cache(maxsize=1024)
def _expected_max(law: Law, m: int, tau: int) -> float:
    if m == 1 or law.mean_s == np.inf:
        return law.mean_s
    total = law.sum_law(tau)
    if total is not None:
        return float(total.single_max(m)) / tau
    if law.sd_s == np.inf:
        from .nested_lattices import expected_max_of_heavy_sum

        return expected_max_of_heavy_sum(law, tau, m) / tau
    from .convolution import expected_max_of_sum

    return float(expected_max_of_sum(law, tau, m)) / tau
