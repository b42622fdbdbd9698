"""The Student source: heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .source import SymmetricSource


@dataclass(frozen=True)
class Student(SymmetricSource):
    """Student's law with dof > 2 degrees of freedom, scaled to unit variance; ValueError otherwise.

    Parameters
    ----------
    dof : float
        Degrees of freedom, > 2.
    """

    dof: float

    def __post_init__(self) -> None:
        if not 2 < self.dof < math.inf:
            raise ValueError(f"the variance is finite only for dof > 2; got dof = {self.dof}")

    @property
    def scale(self) -> float:
        """s = sqrt((dof - 2)/dof)."""
        return math.sqrt((self.dof - 2) / self.dof)

    @property
    def entropy_bits(self) -> float:
        """(dof+1)/2 [psi((dof+1)/2) - psi(dof/2)] + ln(sqrt(dof) B(dof/2, 1/2)) + ln s, in bits."""
        from scipy.special import betaln, digamma

        half = self.dof / 2
        nats = (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + betaln(half, 0.5)
        return float(nats + 0.5 * math.log(self.dof) + math.log(self.scale)) / math.log(2)

    def density(self, x: Any) -> Any:
        """Return (1 + (x/s)^2/dof)^(-(dof+1)/2)/(s sqrt(dof) B(dof/2, 1/2))."""
        from scipy.special import betaln

        log_factor = -betaln(self.dof / 2, 0.5) - 0.5 * math.log(self.dof) - math.log(self.scale)
        return np.exp(log_factor - (self.dof + 1) / 2 * np.log1p(np.square(np.asarray(x) / self.scale) / self.dof))

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        return self.scale * generator.standard_t(self.dof, size=shape)

    def tails(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return incomplete beta functions of w = dof/(dof + (t/s)^2); the first moment is elementary."""
        from scipy.special import betainc

        half = self.dof / 2
        w = self.dof / (self.dof + np.square(np.asarray(t) / self.scale))
        mass = betainc(half, 0.5, w) / 2
        first = self.density(np.asarray(t)) * self.scale**2 * self.dof / (self.dof - 1) / w
        return mass, first, betainc(half - 1, 1.5, w) / 2
