"""The Laplace source: the usual first model of gradient coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .source import SymmetricSource

SCALE = math.sqrt(0.5)  # variance 2 s^2 = 1


@dataclass(frozen=True)
class Laplace(SymmetricSource):
    """Density ``e^(-|x|/s)/(2s)`` with unit variance."""

    @property
    def entropy_bits(self) -> float:
        """log2(2 e s)."""
        return math.log2(2 * math.e * SCALE)

    def density(self, x: Any) -> Any:
        """Return ``e^(-|x|/s)/(2s)``."""
        return np.exp(-np.abs(x) / SCALE) / (2 * SCALE)

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        return generator.laplace(scale=SCALE, size=shape)

    def tails(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return e^(-t/s)/2 times 1, t + s and t^2 + 2 s t + 2 s^2."""
        mass = np.exp(-t / SCALE) / 2
        return mass, mass * (t + SCALE), mass * (t * t + 2 * SCALE * t + 2 * SCALE**2)
