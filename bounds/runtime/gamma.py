"""Gamma step times; Erlang sums of exponential steps are a special case."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import positive
from .law import Law


@dataclass(frozen=True)
class Gamma(Law):
    """Density proportional to t^(shape-1) exp(-t/scale) on t > 0; shape, scale > 0, scale in seconds.

    Sums stay in the family, so every expected maximum is one quadrature.

    Parameters
    ----------
    shape : float
        Shape parameter, > 0.
    scale : float
        Scale in seconds, > 0.

    Raises
    ------
    ValueError
        For other arguments.
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)

    @property
    def mean_s(self) -> float:
        """The product of shape and scale."""
        return self.shape * self.scale

    @property
    def sd_s(self) -> float:
        """scale sqrt(shape)."""
        return self.scale * math.sqrt(self.shape)

    @property
    def skewness(self) -> float:
        """2/sqrt(shape)."""
        return 2 / math.sqrt(self.shape)

    def sf(self, t: Any) -> np.ndarray:
        """Return the regularised upper incomplete gamma function."""
        from scipy.special import gammaincc

        return gammaincc(self.shape, np.maximum(np.asarray(t, float), 0) / self.scale)

    def excess(self, t: float) -> float:
        """Return E max(Y - t, 0) = shape scale Q(shape + 1, t/scale) - t Q(shape, t/scale)."""
        from scipy.special import gammaincc

        x = t / self.scale
        return self.scale * max(float(self.shape * gammaincc(self.shape + 1, x) - x * gammaincc(self.shape, x)), 0.0)

    def quantile(self, tail: float) -> float:
        """By inversion of the upper incomplete gamma function."""
        from scipy.special import gammainccinv

        return float(gammainccinv(self.shape, tail)) * self.scale

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.gamma(self.shape, self.scale, shape)

    def sum_law(self, tau: int) -> Law:
        """Return gamma with tau times the shape."""
        return Gamma(tau * self.shape, self.scale)
