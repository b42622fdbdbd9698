"""Step times resampled from measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .checks import nonnegative, positive_integer
from .convolution import waiting_below_of_sum
from .law import Law
from .quadrature import order_weights


@dataclass(frozen=True, init=False)
class Empirical(Law):
    """Each step takes one of the measured times (seconds, >= 0), all equally likely.

    A plug-in law: the maximum over m workers can never exceed the largest sample, so it is biased downward unless there
    are many more samples than m; for the unbiased estimate of a single step's maximum see
    ``bounds.estimate.expected_max_of_samples``.  Do not pool workers of different speed.

    Parameters
    ----------
    samples : iterable of float
        Measured times, shape (n,).

    Raises
    ------
    ValueError
        For no sample, or for one that is negative, infinite or nan.
    """

    samples: tuple[float, ...]

    def __init__(self, samples: Iterable[float]) -> None:
        values = tuple(sorted(nonnegative("each sample", value) for value in samples))
        if not values:
            raise ValueError("an empirical law needs at least one sample; got none")
        object.__setattr__(self, "samples", values)

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.array(self.samples)

    @property
    def mean_s(self) -> float:
        """The sample mean."""
        return float(self._sorted.mean())

    @property
    def sd_s(self) -> float:
        """The standard deviation of the resampling law (divisor n)."""
        return float(self._sorted.std())

    @property
    def skewness(self) -> float:
        """The third standardised sample moment; 0 if all samples agree."""
        centred = self._sorted - self.mean_s
        return float((centred**3).mean()) / self.sd_s**3 if self.sd_s > 0 else 0.0

    @property
    def lower_s(self) -> float:
        """The smallest sample."""
        return self.samples[0]

    @property
    def upper_s(self) -> float:
        """The largest sample."""
        return self.samples[-1]

    def sf(self, t: Any) -> np.ndarray:
        """Return the share of samples beyond t."""
        return 1 - np.searchsorted(self._sorted, np.asarray(t, float), side="right") / len(self.samples)

    def excess(self, t: float) -> float:
        """Return the mean of what exceeds t."""
        return float(np.maximum(self._sorted - t, 0).mean())

    def quantile(self, tail: float) -> float:
        """Return the smallest sample exceeded with probability at most ``tail``."""
        return self.samples[max(int(np.ceil((1 - tail) * len(self.samples))) - 1, 0)]

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return independent draws with replacement."""
        return rng.choice(self._sorted, shape)

    def sum_law(self, tau: int) -> Law | None:
        """Return a constant if all samples agree."""
        from .constant import Constant

        return Constant(tau * self.lower_s) if self.lower_s == self.upper_s else super().sum_law(tau)

    def lattice(self, width_s: float, cells: int) -> np.ndarray:
        """Return every sample split between its two neighbouring lattice points."""
        position = (self._sorted - self.lower_s) / width_s
        below = np.floor(position).astype(int)
        share = (position - below) / len(self.samples)
        masses = np.bincount(below, 1 / len(self.samples) - share, cells + 1)
        return (masses + np.bincount(below + 1, share, cells + 1)[: masses.size])[:cells]

    def single_max(self, m: int) -> float:
        """Return the sum over order statistics x_(j) of ((j/n)^m - ((j-1)/n)^m) x_(j)."""
        return float(order_weights(len(self.samples), m) @ self._sorted)

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return for single steps the same sum with every sample raised to the floor, exactly; else by convolution."""
        tau, floor_s = positive_integer("tau", tau), nonnegative("floor_s", floor_s)
        if tau == 1:
            return Empirical(np.maximum(self._sorted, floor_s)).expected_max(m=m)
        if not tau * self.lower_s < floor_s < tau * self.upper_s:
            return super().expected_max_above(floor_s, m=m, tau=tau)
        waiting_s = waiting_below_of_sum(self, tau, positive_integer("m", m), floor_s)
        return max(floor_s, tau * self.expected_max(m=m, tau=tau) + waiting_s)
