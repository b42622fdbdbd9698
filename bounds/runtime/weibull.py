"""Weibull step times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import positive
from .law import Law


@dataclass(frozen=True)
class Weibull(Law):
    """P(Y > t) = exp(-(t/scale)^shape); scale > 0 in seconds, shape > 0.

    The maximum is integrated: the alternating binomial sum loses all digits from about m = 40 on.

    Parameters
    ----------
    scale : float
        Scale in seconds, > 0.
    shape : float
        Shape parameter, > 0; below 1 the tail is heavier than exponential.

    Raises
    ------
    ValueError
        For other arguments.
    """

    scale: float
    shape: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        positive("shape", self.shape)

    @property
    def mean_s(self) -> float:
        """scale Gamma(1 + 1/shape)."""
        return self.scale * math.gamma(1 + 1 / self.shape)

    @property
    def sd_s(self) -> float:
        """scale sqrt(Gamma(1 + 2/shape) - Gamma(1 + 1/shape)^2)."""
        g1, g2 = (math.gamma(1 + i / self.shape) for i in (1, 2))
        return self.scale * math.sqrt(g2 - g1**2)

    @property
    def skewness(self) -> float:
        """From the first three moments Gamma(1 + i/shape)."""
        g1, g2, g3 = (math.gamma(1 + i / self.shape) for i in (1, 2, 3))
        return (g3 - 3 * g1 * g2 + 2 * g1**3) / (g2 - g1**2) ** 1.5

    def sf(self, t: Any) -> np.ndarray:
        """Return exp(-(t/scale)^shape)."""
        return np.exp(-((np.maximum(np.asarray(t, float), 0) / self.scale) ** self.shape))

    def excess(self, t: float) -> float:
        """Return scale Gamma(1 + 1/shape) times the regularised upper gamma function of (t/scale)^shape."""
        from scipy.special import gammaincc

        return self.mean_s * float(gammaincc(1 / self.shape, (t / self.scale) ** self.shape))

    def quantile(self, tail: float) -> float:
        """Return scale (-log tail)^(1/shape)."""
        return self.scale * (-math.log(tail)) ** (1 / self.shape)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.scale * rng.weibull(self.shape, shape)

    def sum_law(self, tau: int) -> Law | None:
        """Return in the package only for tau = 1, or as a Gamma law for shape 1."""
        from .gamma import Gamma

        if tau > 1 and self.shape == 1:
            return Gamma(float(tau), self.scale)
        return super().sum_law(tau)
