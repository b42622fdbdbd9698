"""The standard normal source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .source import GAUSSIAN_ENTROPY_BITS, SymmetricSource


@dataclass(frozen=True)
class Gaussian(SymmetricSource):
    """N(0, 1): at a given variance the source that needs the most bits."""

    @property
    def entropy_bits(self) -> float:
        """log2(2 pi e)/2."""
        return GAUSSIAN_ENTROPY_BITS

    def density(self, x: Any) -> Any:
        """Return e^(-x^2/2)/sqrt(2 pi)."""
        return np.exp(-np.square(x) / 2) / math.sqrt(2 * math.pi)

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        return generator.standard_normal(shape)

    def tails(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return P, E[X; .] = phi(t) and E[X^2; .] = P + t phi(t)."""
        from scipy.special import ndtr

        mass, first = ndtr(-t), self.density(t)
        return mass, first, mass + t * first
