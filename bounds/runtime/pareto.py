"""Pareto step times: power-law stragglers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import positive
from .law import Law


@dataclass(frozen=True)
class Pareto(Law):
    """P(Y > t) = (minimum/t)^exponent for t >= minimum; minimum > 0 in seconds, exponent > 0.

    All means are infinite for exponent <= 1; for 1 < exponent <= 2 the variance is infinite and a Monte-Carlo estimate
    of the maximum has no error bar; the value of ``nested_lattices`` is within 1e-6 up to 1000 steps (under
    ``PersistentStragglers`` one lattice serves, up to 1.4e-3 off at exponent 1.5 and tau = 1000).  Averaging tau steps
    shrinks the excess over the mean only like tau^-(1 - 1/exponent) then, not like tau^-1/2.

    Parameters
    ----------
    minimum : float
        The smallest possible time, in seconds, > 0.
    exponent : float
        Tail exponent, > 0; the mean is finite above 1, the variance above 2.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    minimum: float
    exponent: float

    def __post_init__(self) -> None:
        positive("minimum", self.minimum)
        positive("exponent", self.exponent)

    @property
    def mean_s(self) -> float:
        """a x_m/(a - 1), infinite for a <= 1."""
        a = self.exponent
        return a * self.minimum / (a - 1) if a > 1 else math.inf

    @property
    def sd_s(self) -> float:
        """x_m/(a-1) sqrt(a/(a-2)), infinite for a <= 2."""
        a = self.exponent
        return self.minimum / (a - 1) * math.sqrt(a / (a - 2)) if a > 2 else math.inf

    @property
    def skewness(self) -> float:
        """2 (1+a)/(a-3) sqrt((a-2)/a), infinite for a <= 3."""
        a = self.exponent
        return 2 * (1 + a) / (a - 3) * math.sqrt((a - 2) / a) if a > 3 else math.inf

    @property
    def lower_s(self) -> float:
        return self.minimum

    def sf(self, t: Any) -> np.ndarray:
        """Return (minimum/t)^exponent from the minimum on."""
        return (self.minimum / np.maximum(np.asarray(t, float), self.minimum)) ** self.exponent

    def excess(self, t: float) -> float:
        """Return t times the tail over (exponent - 1); infinite for exponent <= 1."""
        return t * float(self.sf(t)) / (self.exponent - 1) if self.exponent > 1 else math.inf

    def quantile(self, tail: float) -> float:
        """Return minimum tail^(-1/exponent)."""
        return self.minimum * tail ** (-1 / self.exponent)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.minimum * (1 + rng.pareto(self.exponent, shape))

    def single_max(self, m: int) -> float:
        """Return x_m Gamma(m+1) Gamma(1-1/a)/Gamma(m+1-1/a): the integral of t d(F^m) is a beta function."""
        from scipy.special import gammaln

        b = 1 - 1 / self.exponent
        return self.minimum * math.exp(float(gammaln(m + 1) + gammaln(b) - gammaln(m + b)))
