"""Bernoulli-Gaussian mixtures: exact zeros, or a second, smaller component."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .gaussian import Gaussian
from .source import Cells, Source

QUADRATURE_NODES = 200_001


@dataclass(frozen=True)
class BernoulliGaussian(Source):
    """N(0, s^2 ratio) with probability ``small_share``, else N(0, s^2); unit variance.

    Parameters
    ----------
    small_share : float
        In (0, 1).
    variance_ratio : float, optional
        In [0, 1); 0 puts an atom at zero (a sparse source).

    Raises
    ------
    ValueError
        For arguments outside.
    """

    small_share: float
    variance_ratio: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.small_share < 1:
            raise ValueError(f"small_share must lie in (0, 1); got {self.small_share}")
        if not 0 <= self.variance_ratio < 1:
            raise ValueError(f"variance_ratio must lie in [0, 1); got {self.variance_ratio}")

    @property
    def second_moment(self) -> float:
        return 1.0

    @property
    def scales(self) -> tuple[float, float]:
        """Standard deviations of the small and the large component."""
        large = 1 / math.sqrt(self.small_share * self.variance_ratio + 1 - self.small_share)
        return large * math.sqrt(self.variance_ratio), large

    @property
    def entropy_bits(self) -> float:
        """By the trapezoid rule on twelve standard deviations; minus infinity with an atom."""
        if self.variance_ratio == 0:
            return -math.inf
        # u = asinh(x/small) resolves both scales; the integrand is smooth and vanishes at the ends
        small, large = self.scales
        u = np.linspace(0, math.asinh(12 * large / small), QUADRATURE_NODES)
        x = small * np.sinh(u)
        density = self.density(x)
        integrand = -density * np.log2(np.maximum(density, 1e-300)) * small * np.cosh(u)
        return float(2 * np.trapezoid(integrand, u))

    def density(self, x: np.ndarray) -> np.ndarray:
        """Return density of the continuous part (away from 0 if there is an atom).

        Parameters
        ----------
        x : ndarray
            Points, any shape.
        """
        small, large = self.scales
        result = (1 - self.small_share) * Gaussian().density(np.asarray(x) / large) / large
        if small > 0:
            result = result + self.small_share * Gaussian().density(np.asarray(x) / small) / small
        return result

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        small, large = self.scales
        scale = np.where(generator.random(shape) < self.small_share, small, large)
        return scale * generator.standard_normal(shape)

    def cells(self, edges: np.ndarray) -> Cells:
        """See ``Source``; an atom becomes a cell of its own."""
        small, large = self.scales
        edges = np.unique(np.concatenate((np.asarray(edges, float), [0.0])))
        if small == 0:
            part = _scaled(Gaussian().cells(edges / large), large)
            middle = int(np.searchsorted(part.lower, 0.0))
            return Cells(
                np.insert((1 - self.small_share) * part.probability, middle, self.small_share),
                np.insert(part.centroid, middle, 0.0),
                np.insert((1 - self.small_share) * part.spread, middle, 0.0),
                np.insert(part.lower, middle, 0.0),
                np.insert(part.upper, middle, 0.0),
            )
        parts = [_dense(Gaussian(), edges, scale) for scale in (small, large)]
        share = self.small_share
        mass, first, second = (share * a + (1 - share) * b for a, b in zip(*parts, strict=True))
        keep = mass > 0
        mass, first, second = mass[keep], first[keep], second[keep]
        lower, upper = np.append(-np.inf, edges)[keep], np.append(edges, np.inf)[keep]
        centroid = np.clip(first / mass, lower, upper)
        return Cells(mass, centroid, np.maximum(second - centroid * first, 0.0), lower, upper)

    def reach(self, share: float) -> float:
        """See ``Source``; the large component dominates the tail."""
        return self.scales[1] * Gaussian().reach(share)


def _scaled(cells: Cells, scale: float) -> Cells:
    return Cells(
        cells.probability, cells.centroid * scale, cells.spread * scale**2, cells.lower * scale, cells.upper * scale
    )


def _dense(law: Gaussian, edges: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P, E[X; .] and E[X^2; .] of all cells, empty ones included."""
    z = edges / scale
    mass, first, second = law.tails(np.abs(z))
    below = z < 0  # reflect: P(X > -t) = 1 - P(X > t), and so on
    mass = np.concatenate(([1.0], np.where(below, 1 - mass, mass), [0.0]))
    first = np.concatenate(([0.0], first, [0.0]))
    second = np.concatenate(([1.0], np.where(below, 1 - second, second), [0.0]))
    return -np.diff(mass), -np.diff(first) * scale, -np.diff(second) * scale**2
