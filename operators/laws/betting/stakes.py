"""How much to bet: the stake that would grow fastest if the bias were of a supposed size, from the draws so far.

A bet pays 1 + lambda ``<e, v> + kappa (|e|^2 - s^2)``.  Every choice made before a draw leaves it fair, so this may use
any estimate of how it would grow; here the first two moments of the payoff.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from .eprocess import SLACK, largest_lambda

_SHARES = np.array([0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.008, 0.003, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5])  # kappa s^2
_TILTS = np.array([0.95, 0.6, 0.3])  # lambda over its largest value
_PRIOR = 2.0  # draws that the worst case counts for: all variance along v, none of the errors' sizes known


@dataclass
class Moments:
    """What has been seen at one vector: number of draws, sums of ``|e|^2``, ``|e|^4``, <e, v>, <e, v>^2, ``<e, v>
    |e|^2``, and of e and e_i^2.

    Parameters
    ----------
    prior : float, optional
        Draws that the worst case counts for.
    """

    d: int
    n: int = 0
    square: float = 0.0
    fourth: float = 0.0
    along: float = 0.0
    along2: float = 0.0
    cross: float = 0.0
    prior: float = _PRIOR
    error: np.ndarray = field(default_factory=lambda: np.zeros(0))
    error2: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.error.size != self.d:
            self.error, self.error2 = np.zeros(self.d), np.zeros(self.d)

    def add(self, errors: np.ndarray, along: np.ndarray, squares: np.ndarray) -> None:
        """Count a batch: errors (n, d); along, squares (n,)."""
        self.n += len(errors)
        self.square += float(squares.sum())
        self.fourth += float((squares**2).sum())
        self.along += float(along.sum())
        self.along2 += float((along**2).sum())
        self.cross += float(along @ squares)
        self.error += errors.sum(axis=0)
        self.error2 += (errors**2).sum(axis=0)

    def mean_square(self, s2: float) -> float:
        """Return the mean of ``|e|^2``, shrunk to s2 while little has been seen; above s2 it is taken for chance."""
        return min(s2, (self.square + self.prior * s2) / (self.n + self.prior))

    def spread(self, s2: float) -> float:
        """Return the variance of ``|e|^2``, at first s2^2."""
        if self.n == 0:
            return s2**2
        mean = self.square / self.n
        return (max(self.fourth - self.n * mean**2, 0.0) + self.prior * s2**2) / (self.n + self.prior)

    def variance_along(self, s2: float) -> float:
        """Return the variance of <e, v>, at first s2."""
        if self.n == 0:
            return s2
        return (max(self.along2 - self.along**2 / self.n, 0.0) + self.prior * s2) / (self.n + self.prior)

    def covariance(self) -> float:
        """Return the covariance of <e, v> and ``|e|^2``, at first 0."""
        return (self.cross - self.along * self.square / max(1, self.n)) / (self.n + self.prior)

    def variance_of_a_coordinate(self, s2: float) -> float:
        """Return the largest second moment of an e_i, at first s2."""
        return (float(self.error2.max()) + self.prior * s2) / (self.n + self.prior)


class Sizes(Protocol):
    """What is known of the squared errors at one kind of vector."""

    def mean_square(self, s2: float) -> float:
        """Return the mean of ``|e|^2``."""

    def spread(self, s2: float) -> float:
        """Return the variance of ``|e|^2``."""


def stakes(
    bias: np.ndarray, s2: float, moments: Sizes, variance: float, covariance: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (lambda, kappa, expected log-growth a draw) for each supposed bias ``|E e|``, shape (m,); zeros where
    nothing grows.

    Parameters
    ----------
    variance : float
        Of <e, v> along the supposed bias.
    covariance : float, optional
        Of <e, v> and ``|e|^2``.
    """
    kappa, tilt = _grid(s2)
    drift = kappa * (moments.mean_square(s2) - s2) - tilt * SLACK
    noise = tilt**2 * variance + kappa**2 * moments.spread(s2) + 2 * tilt * kappa * covariance
    mean = np.maximum(bias[:, None] * tilt + drift, -0.99)
    growth = np.log1p(mean) - 0.5 * noise / (1 + np.maximum(mean, 0)) ** 2
    best = growth.argmax(axis=1)
    gain = growth[np.arange(bias.size), best]
    on = gain > 0
    return np.where(on, tilt[best], 0.0), np.where(on, kappa[best], 0.0), np.where(on, gain, 0.0)


@lru_cache(maxsize=1024)
def _grid(s2: float) -> tuple[np.ndarray, np.ndarray]:
    """Return every (kappa, lambda) that is tried."""
    share = np.repeat(_SHARES, _TILTS.size)
    kappa = share / s2
    return kappa, np.tile(_TILTS, _SHARES.size) * largest_lambda(kappa, share)
