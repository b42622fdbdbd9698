"""Uniform step times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import nonnegative, positive
from .law import Law


@dataclass(frozen=True)
class Uniform(Law):
    """Y is uniform on [low, high], 0 <= low < high, in seconds.

    Parameters
    ----------
    low : float
        The shortest time, in seconds.
    high : float
        The longest time, in seconds.

    Raises
    ------
    ValueError
        For other arguments.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        nonnegative("low", self.low)
        positive("high - low", self.high - self.low)

    @property
    def mean_s(self) -> float:
        return (self.low + self.high) / 2

    @property
    def sd_s(self) -> float:
        """(high - low)/sqrt(12)."""
        return (self.high - self.low) / math.sqrt(12)

    @property
    def skewness(self) -> float:
        """0 by symmetry."""
        return 0.0

    @property
    def lower_s(self) -> float:
        """The low end."""
        return self.low

    @property
    def upper_s(self) -> float:
        """The high end."""
        return self.high

    def sf(self, t: Any) -> np.ndarray:
        """Return linear from 1 to 0."""
        return np.clip((self.high - np.asarray(t, float)) / (self.high - self.low), 0.0, 1.0)

    def excess(self, t: float) -> float:
        """Return (high - t)^2/(2 (high - low))."""
        return max(self.high - t, 0.0) ** 2 / (2 * (self.high - self.low))

    def quantile(self, tail: float) -> float:
        """Return high - tail (high - low)."""
        return self.high - tail * (self.high - self.low)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(self.low, self.high, shape)

    def single_max(self, m: int) -> float:
        """Return low + (high - low) m/(m + 1)."""
        return self.low + (self.high - self.low) * m / (m + 1)
