"""The generalised Gaussian source: between a spike and a box, by its exponent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .source import SymmetricSource


@dataclass(frozen=True)
class GeneralisedGaussian(SymmetricSource):
    """Density proportional to ``e^(-|x/s|^shape)`` with unit variance.

    Parameters
    ----------
    shape : float
        0.1 <= shape <= 100; 1 is Laplace, 2 Gaussian, large values tend to the uniform law.

    Raises
    ------
    ValueError
        For any other shape.
    """

    shape: float

    def __post_init__(self) -> None:
        if not 0.1 <= self.shape <= 100:
            raise ValueError(f"the exponent must satisfy 0.1 <= shape <= 100; got shape = {self.shape}")

    @property
    def scale(self) -> float:
        """s = sqrt(Gamma(1/shape)/Gamma(3/shape))."""
        return math.exp((math.lgamma(1 / self.shape) - math.lgamma(3 / self.shape)) / 2)

    @property
    def entropy_bits(self) -> float:
        """log2(2 s Gamma(1/shape)/shape) + log2(e)/shape."""
        log = math.log(2 * self.scale / self.shape) + math.lgamma(1 / self.shape) + 1 / self.shape
        return log / math.log(2)

    def density(self, x: Any) -> Any:
        """Return shape/(2 s Gamma(1/shape)) ``e^(-|x/s|^shape)``."""
        log_factor = math.log(self.shape / (2 * self.scale)) - math.lgamma(1 / self.shape)
        return np.exp(log_factor - np.abs(np.asarray(x) / self.scale) ** self.shape)

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        """Return independent draws: ``|X/s|^shape`` is Gamma(1/shape)."""
        size = generator.gamma(1 / self.shape, size=shape) ** (1 / self.shape)
        return self.scale * size * np.where(generator.random(shape) < 0.5, -1.0, 1.0)

    def tails(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return incomplete gamma functions of (t/s)^shape: the k-th absolute moment has order (k + 1)/shape."""
        from scipy.special import gammaincc

        u = (np.asarray(t) / self.scale) ** self.shape
        orders = [(k + 1) / self.shape for k in range(3)]
        moments = [self.scale**k * math.exp(math.lgamma(a) - math.lgamma(orders[0])) / 2 for k, a in enumerate(orders)]
        mass, first, second = (m * gammaincc(a, u) for m, a in zip(moments, orders, strict=True))
        return mass, first, second
