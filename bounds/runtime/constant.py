"""Every step takes the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import nonnegative, positive_integer
from .law import Law


@dataclass(frozen=True)
class Constant(Law):
    """Y = mean seconds, always; mean >= 0.

    Parameters
    ----------
    mean : float
        The time of every step, in seconds.

    Raises
    ------
    ValueError
        For other arguments.
    """

    mean: float

    def __post_init__(self) -> None:
        nonnegative("mean", self.mean)

    @property
    def mean_s(self) -> float:
        return self.mean

    @property
    def sd_s(self) -> float:
        """Zero, for nothing varies."""
        return 0.0

    @property
    def skewness(self) -> float:
        """0 by convention."""
        return 0.0

    @property
    def lower_s(self) -> float:
        return self.mean

    @property
    def upper_s(self) -> float:
        return self.mean

    def sf(self, t: Any) -> np.ndarray:
        """Return 1 before the time, 0 from it on."""
        return np.where(np.asarray(t, float) < self.mean, 1.0, 0.0)

    def excess(self, t: float) -> float:
        """Return what is missing to the time."""
        return max(self.mean - t, 0.0)

    def quantile(self, tail: float) -> float:
        return self.mean

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array filled with the time; no randomness is used."""
        return np.full(shape, self.mean)

    def sum_law(self, tau: int) -> Law:
        """Return tau times as long."""
        return Constant(tau * self.mean)

    def single_max(self, m: int) -> float:
        return self.mean

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return the larger of the two times."""
        positive_integer("m", m)
        return max(positive_integer("tau", tau) * self.mean, nonnegative("floor_s", floor_s))
