"""What a source is: a law of one coordinate, with density, entropy, sampler and exact moments of cells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

GAUSSIAN_ENTROPY_BITS = 0.5 * math.log2(2 * math.pi * math.e)  # differential entropy of N(0, 1)


@dataclass(frozen=True)
class Cells:
    """A partition of the real line into intervals, with what the law puts into each.

    Parameters
    ----------
    probability : ndarray
        P(cell); cells of probability 0 are left out.
    centroid : ndarray
        ``E[X | cell]``.
    spread : ndarray
        E[(X - centroid)^2; cell], so that the total is the error of replacing X by the centroid.
    lower : ndarray
        Lower end; equal to the upper one for an atom, infinite in the first cell.
    upper : ndarray
        Upper end; infinite in the last cell.
    """

    probability: np.ndarray
    centroid: np.ndarray
    spread: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def second_moment(self) -> float:
        """E X^2."""
        return float(np.sum(self.probability * self.centroid**2) + np.sum(self.spread))


class Source(ABC):
    """The law of one coordinate."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E X^2; distortions are given relative to it (nmse)."""

    @property
    @abstractmethod
    def entropy_bits(self) -> float:
        """Differential entropy in bits; minus infinity if the law has atoms."""

    @abstractmethod
    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        """Return independent draws, float64.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the array that is returned.
        generator : numpy Generator
            Source of randomness; it is advanced.
        """

    @abstractmethod
    def cells(self, edges: np.ndarray) -> Cells:
        """Return the partition at increasing finite edges; the first and last cells are unbounded.

        Parameters
        ----------
        edges : ndarray
            Ascending ends of the cells.
        """

    @abstractmethod
    def reach(self, share: float) -> float:
        """Return a t such that E[X^2; ``|X| > t]`` is at most share times the second moment.

        Parameters
        ----------
        share : float
            Share of the mean square that may lie beyond.
        """

    def shannon_lower_bound(self, nmse: float) -> float:
        """Return max(0, h(X) - log2(2 pi e D)/2) bits per coordinate at D = nmse E X^2; 0 where h is minus infinity.

        Parameters
        ----------
        nmse : float
            Mean square error over the mean square of the input, > 0.
        """
        distortion = checked_nmse(nmse) * self.second_moment
        return max(0.0, self.entropy_bits - GAUSSIAN_ENTROPY_BITS - 0.5 * math.log2(distortion))


def checked_nmse(nmse: float) -> float:
    """Return the nmse itself; ValueError unless 0 < nmse < 1.

    Parameters
    ----------
    nmse : float
        Mean square error over the mean square of the input, > 0.
    """
    if not 0 < nmse < 1:
        raise ValueError(f"nmse must satisfy 0 < nmse < 1 (at 1 sending nothing is enough); got nmse = {nmse}")
    return nmse


class SymmetricSource(Source):
    """A law with a symmetric density and unit variance, given by its upper tails."""

    @abstractmethod
    def density(self, x: Any) -> Any:
        """Return probability density at x.

        Parameters
        ----------
        x
            Points, any shape.
        """

    @abstractmethod
    def tails(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return P(X > t), E[X; X > t] and E[X^2; X > t] for finite t >= 0.

        Parameters
        ----------
        t : ndarray
            Points >= 0, any shape.
        """

    @property
    def second_moment(self) -> float:
        """One, for these laws are standardised."""
        return 1.0

    def cells(self, edges: np.ndarray) -> Cells:
        """See ``Source``; an edge at 0 is added, so that no cell mixes the two signs."""
        edges = np.unique(np.concatenate((np.asarray(edges, float), [0.0])))
        positive, negative = self._half(edges[edges >= 0]), self._half(-edges[edges <= 0][::-1])
        p, c, s, low, high = (np.concatenate((n[::-1], q)) for n, q in zip(negative, positive, strict=True))
        count = len(negative[0])
        c[:count] *= -1
        low[:count], high[:count] = -high[:count].copy(), -low[:count].copy()
        keep = p > 0
        return Cells(p[keep], c[keep], s[keep], low[keep], high[keep])

    def reach(self, share: float) -> float:
        """See ``Source``; by bisection."""
        low, high = 0.0, 1.0
        while 2 * self.tails(np.array([high]))[2][0] > share:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            if 2 * self.tails(np.array([middle]))[2][0] > share:
                low = middle
            else:
                high = middle
        return high

    def _half(self, edges: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the cells of [0, inf) at edges that begin with 0."""
        mass, first, second = (np.append(tail, 0.0) for tail in self.tails(edges))
        p, m1, m2 = -np.diff(mass), -np.diff(first), -np.diff(second)
        upper = np.append(edges[1:], np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            centroid = np.clip(np.where(p > 0, m1 / p, edges), edges, upper)
        spread = np.maximum(m2 - centroid * m1, 0.0)
        bounded = np.isfinite(upper)
        width = np.where(bounded, upper, edges) - edges
        spread = np.where(bounded, np.minimum(spread, p * width**2 / 4), spread)  # no law on an interval varies more
        return p, centroid, spread, edges.copy(), upper
