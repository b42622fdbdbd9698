"""A fixed part plus an exponential part: the usual model of a step with stragglers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import nonnegative
from .exponential import Exponential
from .gamma import Gamma
from .law import Law


@dataclass(frozen=True)
class ShiftedExponential(Law):
    """Y = shift + an exponential time of mean ``scale``, both in seconds; shift >= 0, scale > 0.

    The mean is shift + scale.

    Parameters
    ----------
    shift : float
        The smallest possible time, in seconds, >= 0.
    scale : float
        Scale in seconds, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    shift: float
    scale: float

    def __post_init__(self) -> None:
        nonnegative("shift", self.shift)
        Exponential(self.scale)

    @property
    def mean_s(self) -> float:
        """shift + scale."""
        return self.shift + self.scale

    @property
    def sd_s(self) -> float:
        return self.scale

    @property
    def skewness(self) -> float:
        return 2.0

    @property
    def lower_s(self) -> float:
        return self.shift

    def sf(self, t: Any) -> np.ndarray:
        """Return exp(-(t - shift)/scale) from the shift on."""
        return Exponential(self.scale).sf(np.asarray(t, float) - self.shift)

    def excess(self, t: float) -> float:
        """Return scale times the tail."""
        return Exponential(self.scale).excess(t - self.shift)

    def quantile(self, tail: float) -> float:
        """Return shift - scale log(tail)."""
        return self.shift + Exponential(self.scale).quantile(tail)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.shift + rng.exponential(self.scale, shape)

    def sum_law(self, tau: int) -> Law:
        """Return gamma with shape tau beyond tau shifts."""
        return self if tau == 1 else ShiftedGamma(tau * self.shift, float(tau), self.scale)

    def single_max(self, m: int) -> float:
        """Return shift + scale H_m."""
        return self.shift + Exponential(self.scale).single_max(m)


@dataclass(frozen=True)
class ShiftedGamma(Law):
    """Y = shift + a Gamma(shape, scale) time: what sums of shifted exponential steps follow.

    Parameters
    ----------
    shift : float
        The smallest possible time, in seconds, >= 0.
    shape : float
        Shape parameter, > 0.
    scale : float
        Scale in seconds, > 0.
    """

    shift: float
    shape: float
    scale: float

    def __post_init__(self) -> None:
        nonnegative("shift", self.shift)
        Gamma(self.shape, self.scale)

    @property
    def mean_s(self) -> float:
        """shift + shape scale."""
        return self.shift + self._gamma.mean_s

    @property
    def sd_s(self) -> float:
        """scale sqrt(shape)."""
        return self._gamma.sd_s

    @property
    def skewness(self) -> float:
        """2/sqrt(shape)."""
        return self._gamma.skewness

    @property
    def lower_s(self) -> float:
        return self.shift

    def sf(self, t: Any) -> np.ndarray:
        """Return the Gamma tail from the shift on."""
        return self._gamma.sf(np.asarray(t, float) - self.shift)

    def excess(self, t: float) -> float:
        """Return that of the Gamma part."""
        return self._gamma.excess(t - self.shift)

    def quantile(self, tail: float) -> float:
        """Return shift plus the Gamma quantile."""
        return self.shift + self._gamma.quantile(tail)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.shift + self._gamma.sample(rng, shape)

    def sum_law(self, tau: int) -> Law:
        """Shift and shape times tau."""
        return ShiftedGamma(tau * self.shift, tau * self.shape, self.scale)

    def single_max(self, m: int) -> float:
        """Return shift plus the Gamma value."""
        return self.shift + self._gamma.single_max(m)

    @property
    def _gamma(self) -> Gamma:
        return Gamma(self.shape, self.scale)
