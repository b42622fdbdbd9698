"""Log-normal step times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import positive
from .law import Law


@dataclass(frozen=True)
class LogNormal(Law):
    """log(Y/second) is normal with mean ``log_mean`` (finite) and standard deviation ``log_sd`` > 0.

    The mean of Y is exp(log_mean + log_sd^2/2) seconds.

    Parameters
    ----------
    log_mean : float
        Mean of the logarithm of the time.
    log_sd : float
        Standard deviation of the logarithm of the time, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    log_mean: float
    log_sd: float

    def __post_init__(self) -> None:
        positive("log_sd", self.log_sd)
        if not math.isfinite(self.log_mean):
            raise ValueError(f"log_mean must be finite; got log_mean = {self.log_mean}")

    @classmethod
    def from_moments(cls, mean: float, sd: float) -> LogNormal:
        """Return the log-normal law with this mean and standard deviation, both in seconds and > 0.

        Parameters
        ----------
        mean : float
            Mean of one step, in seconds, > 0.
        sd : float
            Standard deviation of one step, in seconds, > 0.
        """
        variance = math.log1p((positive("sd", sd) / positive("mean", mean)) ** 2)
        return cls(math.log(mean) - variance / 2, math.sqrt(variance))

    @property
    def mean_s(self) -> float:
        """exp(log_mean + log_sd^2/2)."""
        return math.exp(self.log_mean + self.log_sd**2 / 2)

    @property
    def sd_s(self) -> float:
        """mean sqrt(exp(log_sd^2) - 1)."""
        return self.mean_s * math.sqrt(math.expm1(self.log_sd**2))

    @property
    def skewness(self) -> float:
        """(exp(log_sd^2) + 2) sqrt(exp(log_sd^2) - 1)."""
        excess = math.expm1(self.log_sd**2)
        return (excess + 3) * math.sqrt(excess)

    def sf(self, t: Any) -> np.ndarray:
        """Return the upper normal tail of (log t - log_mean)/log_sd."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            return ndtr((self.log_mean - np.log(np.maximum(np.asarray(t, float), 0))) / self.log_sd)

    def excess(self, t: float) -> float:
        """Return mean Phi(log_sd - z) - t Phi(-z) with z = (log t - log_mean)/log_sd (the call-option formula)."""
        from scipy.special import ndtr

        if t == 0:
            return self.mean_s
        z = (math.log(t) - self.log_mean) / self.log_sd
        return max(self.mean_s * float(ndtr(self.log_sd - z)) - t * float(ndtr(-z)), 0.0)

    def quantile(self, tail: float) -> float:
        """Return exp(log_mean + log_sd z) at the normal quantile."""
        from scipy.special import ndtri

        return math.exp(self.log_mean - self.log_sd * float(ndtri(tail)))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.lognormal(self.log_mean, self.log_sd, shape)
