"""Parametric laws of one gradient coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .source import GAUSSIAN_ENTROPY_BITS, Cells, Source, SymmetricSource

# -- Gaussian ------------------------------------------------------------------------------------------


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


# -- Laplace -------------------------------------------------------------------------------------------

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


# -- Student -------------------------------------------------------------------------------------------


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


# -- generalised Gaussian ------------------------------------------------------------------------------


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


# -- Bernoulli-Gaussian --------------------------------------------------------------------------------

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
