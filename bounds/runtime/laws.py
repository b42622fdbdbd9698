"""Laws of one step's time: distributions of scipy.stats, with what it lacks: sums of steps, excesses and maxima."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .checks import nonnegative, positive, positive_integer
from .convolution import waiting_below_of_sum
from .law import Law
from .quadrature import order_weights


@lru_cache(maxsize=1024)
def _frozen(name: str, *shapes: float, loc: float, scale: float) -> Any:
    """Return a distribution of scipy.stats, which takes a fifth of a second to import and so waits until here."""
    from scipy import stats

    return getattr(stats, name)(*shapes, loc=loc, scale=scale)


class ScipyLaw(Law):
    """A law that a distribution of scipy.stats describes: moments, support, tail and quantiles are its own."""

    @property
    @abstractmethod
    def distribution(self) -> Any:
        """The frozen distribution of scipy.stats."""

    @property
    def mean_s(self) -> float:
        return float(self.distribution.mean())

    @property
    def sd_s(self) -> float:
        return float(self.distribution.std())

    @property
    def skewness(self) -> float:
        skewness = float(self.distribution.stats(moments="s"))
        return math.inf if math.isnan(skewness) else skewness

    @property
    def lower_s(self) -> float:
        return float(self.distribution.support()[0])

    @property
    def upper_s(self) -> float:
        return float(self.distribution.support()[1])

    def sf(self, t: Any) -> np.ndarray:
        return np.asarray(self.distribution.sf(t))

    def quantile(self, tail: float) -> float:
        return float(self.distribution.isf(tail))


class GammaFamily(Law):
    """A shift plus a Gamma time, in closed form: scipy.stats would take a quarter of a second to import."""

    @property
    @abstractmethod
    def _parts(self) -> tuple[float, float, float]:
        """Shift in seconds, shape, and scale in seconds."""

    @property
    def mean_s(self) -> float:
        shift, shape, scale = self._parts
        return shift + shape * scale

    @property
    def sd_s(self) -> float:
        _, shape, scale = self._parts
        return scale * math.sqrt(shape)

    @property
    def skewness(self) -> float:
        """2/sqrt(shape)."""
        return 2 / math.sqrt(self._parts[1])

    @property
    def lower_s(self) -> float:
        return self._parts[0]

    def sf(self, t: Any) -> np.ndarray:
        """Return the regularised upper incomplete gamma function, exp(-x) for shape 1."""
        from scipy.special import gammaincc

        shift, shape, scale = self._parts
        x = np.maximum(np.asarray(t, float) - shift, 0) / scale
        return np.exp(-x) if shape == 1 else gammaincc(shape, x)

    def quantile(self, tail: float) -> float:
        """By inversion of the upper incomplete gamma function, -log(tail) for shape 1."""
        from scipy.special import gammainccinv

        shift, shape, scale = self._parts
        return shift + scale * float(-np.log(tail) if shape == 1 else gammainccinv(shape, tail))


@dataclass(frozen=True)
class Constant(Law):
    """Y = mean seconds, always; mean >= 0.

    Parameters
    ----------
    mean : float
        The time of every step, in seconds.

    Raises
    ------
    ValueError
        For other arguments.
    """

    mean: float

    def __post_init__(self) -> None:
        nonnegative("mean", self.mean)

    @property
    def mean_s(self) -> float:
        return self.mean

    @property
    def sd_s(self) -> float:
        """Zero, for nothing varies."""
        return 0.0

    @property
    def skewness(self) -> float:
        """0 by convention."""
        return 0.0

    @property
    def lower_s(self) -> float:
        return self.mean

    @property
    def upper_s(self) -> float:
        return self.mean

    def sf(self, t: Any) -> np.ndarray:
        """Return 1 before the time, 0 from it on."""
        return np.where(np.asarray(t, float) < self.mean, 1.0, 0.0)

    def excess(self, t: float) -> float:
        """Return what is missing to the time."""
        return max(self.mean - t, 0.0)

    def quantile(self, tail: float) -> float:
        return self.mean

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return an array filled with the time; no randomness is used."""
        return np.full(shape, self.mean)

    def sum_law(self, tau: int) -> Law:
        """Return tau times as long."""
        return Constant(tau * self.mean)

    def single_max(self, m: int) -> float:
        return self.mean

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return the larger of the two times."""
        positive_integer("m", m)
        return max(positive_integer("tau", tau) * self.mean, nonnegative("floor_s", floor_s))


@dataclass(frozen=True)
class Uniform(ScipyLaw):
    """Y is uniform on [low, high], 0 <= low < high, in seconds.

    Parameters
    ----------
    low : float
        The shortest time, in seconds.
    high : float
        The longest time, in seconds.

    Raises
    ------
    ValueError
        For other arguments.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        nonnegative("low", self.low)
        positive("high - low", self.high - self.low)

    @property
    def distribution(self) -> Any:
        return _frozen("uniform", loc=self.low, scale=self.high - self.low)

    def excess(self, t: float) -> float:
        """Return (high - t)^2/(2 (high - low))."""
        return max(self.high - t, 0.0) ** 2 / (2 * (self.high - self.low))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(self.low, self.high, shape)

    def single_max(self, m: int) -> float:
        """Return low + (high - low) m/(m + 1)."""
        return self.low + (self.high - self.low) * m / (m + 1)


@dataclass(frozen=True)
class Gamma(GammaFamily):
    """Density proportional to t^(shape-1) exp(-t/scale) on t > 0; shape, scale > 0, scale in seconds.

    Sums stay in the family, so every expected maximum is one quadrature.

    Parameters
    ----------
    shape : float
        Shape parameter, > 0.
    scale : float
        Scale in seconds, > 0.

    Raises
    ------
    ValueError
        For other arguments.
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)

    @property
    def _parts(self) -> tuple[float, float, float]:
        return 0.0, self.shape, self.scale

    def excess(self, t: float) -> float:
        """Return E max(Y - t, 0) = shape scale Q(shape + 1, t/scale) - t Q(shape, t/scale)."""
        from scipy.special import gammaincc

        x = t / self.scale
        return self.scale * max(float(self.shape * gammaincc(self.shape + 1, x) - x * gammaincc(self.shape, x)), 0.0)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.gamma(self.shape, self.scale, shape)

    def sum_law(self, tau: int) -> Law:
        """Return gamma with tau times the shape."""
        return Gamma(tau * self.shape, self.scale)


@dataclass(frozen=True)
class Exponential(GammaFamily):
    """P(Y > t) = exp(-t/mean); mean > 0 in seconds.

    E max of m single steps is mean * H_m, with the harmonic number.  (mean * log m is 18 % low at m = 16.)  The sum of
    tau steps is Gamma.

    Parameters
    ----------
    mean : float
        Mean of one step, in seconds, > 0.

    Raises
    ------
    ValueError
        Unless mean is finite and > 0.
    """

    mean: float

    def __post_init__(self) -> None:
        positive("mean", self.mean)

    @property
    def _parts(self) -> tuple[float, float, float]:
        return 0.0, 1.0, self.mean

    def excess(self, t: float) -> float:
        """Return mean times the tail: the law has no memory."""
        return self.mean * float(self.sf(t))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.exponential(self.mean, shape)

    def sum_law(self, tau: int) -> Law:
        """Return gamma with shape tau."""
        return self if tau == 1 else Gamma(float(tau), self.mean)

    def single_max(self, m: int) -> float:
        """Return mean * H_m: the gaps between the order statistics are exponential with means mean/k."""
        return self.mean * harmonic(m)


def harmonic(m: int) -> float:
    """Return H_m = 1 + 1/2 + ... + 1/m, for an integer m >= 1."""
    from scipy.special import digamma

    return float(digamma(m + 1.0)) + float(np.euler_gamma)


@dataclass(frozen=True)
class ShiftedExponential(GammaFamily):
    """Y = shift + an exponential time of mean ``scale``, both in seconds; shift >= 0, scale > 0.

    The mean is shift + scale.

    Parameters
    ----------
    shift : float
        The smallest possible time, in seconds, >= 0.
    scale : float
        Scale in seconds, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    shift: float
    scale: float

    def __post_init__(self) -> None:
        nonnegative("shift", self.shift)
        positive("scale", self.scale)

    @property
    def _parts(self) -> tuple[float, float, float]:
        return self.shift, 1.0, self.scale

    def excess(self, t: float) -> float:
        """Return scale times the tail."""
        return self.scale * float(self.sf(t))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.shift + rng.exponential(self.scale, shape)

    def sum_law(self, tau: int) -> Law:
        """Return gamma with shape tau beyond tau shifts."""
        return self if tau == 1 else ShiftedGamma(tau * self.shift, float(tau), self.scale)

    def single_max(self, m: int) -> float:
        """Return shift + scale H_m."""
        return self.shift + self.scale * harmonic(m)


@dataclass(frozen=True)
class ShiftedGamma(GammaFamily):
    """Y = shift + a Gamma(shape, scale) time: what sums of shifted exponential steps follow.

    Parameters
    ----------
    shift : float
        The smallest possible time, in seconds, >= 0.
    shape : float
        Shape parameter, > 0.
    scale : float
        Scale in seconds, > 0.
    """

    shift: float
    shape: float
    scale: float

    def __post_init__(self) -> None:
        nonnegative("shift", self.shift)
        positive("shape", self.shape)
        positive("scale", self.scale)

    @property
    def _parts(self) -> tuple[float, float, float]:
        return self.shift, self.shape, self.scale

    def excess(self, t: float) -> float:
        """Return the excess of the Gamma part."""
        return self._gamma.excess(t - self.shift)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.shift + self._gamma.sample(rng, shape)

    def sum_law(self, tau: int) -> Law:
        """Shift and shape times tau."""
        return ShiftedGamma(tau * self.shift, tau * self.shape, self.scale)

    def single_max(self, m: int) -> float:
        """Return shift plus the Gamma value."""
        return self.shift + self._gamma.single_max(m)

    @property
    def _gamma(self) -> Gamma:
        return Gamma(self.shape, self.scale)


@dataclass(frozen=True)
class Weibull(ScipyLaw):
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
    def distribution(self) -> Any:
        return _frozen("weibull_min", self.shape, loc=0.0, scale=self.scale)

    def excess(self, t: float) -> float:
        """Return scale Gamma(1 + 1/shape) times the regularised upper gamma function of (t/scale)^shape."""
        from scipy.special import gammaincc

        return self.mean_s * float(gammaincc(1 / self.shape, (t / self.scale) ** self.shape))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.scale * rng.weibull(self.shape, shape)

    def sum_law(self, tau: int) -> Law | None:
        """Return the law for tau = 1, a Gamma law for shape 1, else None: no other is in the package."""

        if tau > 1 and self.shape == 1:
            return Gamma(float(tau), self.scale)
        return super().sum_law(tau)


@dataclass(frozen=True)
class LogNormal(ScipyLaw):
    """log(Y/second) is normal with mean ``log_mean`` (finite) and standard deviation ``log_sd`` > 0.

    The mean of Y is exp(log_mean + log_sd^2/2) seconds.

    Parameters
    ----------
    log_mean : float
        Mean of the logarithm of the time.
    log_sd : float
        Standard deviation of the logarithm of the time, > 0.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    log_mean: float
    log_sd: float

    def __post_init__(self) -> None:
        positive("log_sd", self.log_sd)
        if not math.isfinite(self.log_mean):
            raise ValueError(f"log_mean must be finite; got log_mean = {self.log_mean}")

    @property
    def distribution(self) -> Any:
        return _frozen("lognorm", self.log_sd, loc=0.0, scale=math.exp(self.log_mean))

    @classmethod
    def from_moments(cls, mean: float, sd: float) -> LogNormal:
        """Return the log-normal law with this mean and standard deviation, both in seconds and > 0.

        Parameters
        ----------
        mean : float
            Mean of one step, in seconds, > 0.
        sd : float
            Standard deviation of one step, in seconds, > 0.
        """
        variance = math.log1p((positive("sd", sd) / positive("mean", mean)) ** 2)
        return cls(math.log(mean) - variance / 2, math.sqrt(variance))

    def excess(self, t: float) -> float:
        """Return mean Phi(log_sd - z) - t Phi(-z) with z = (log t - log_mean)/log_sd (the call-option formula)."""
        from scipy.special import ndtr

        if t == 0:
            return self.mean_s
        z = (math.log(t) - self.log_mean) / self.log_sd
        return max(self.mean_s * float(ndtr(self.log_sd - z)) - t * float(ndtr(-z)), 0.0)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.lognormal(self.log_mean, self.log_sd, shape)


@dataclass(frozen=True)
class Pareto(ScipyLaw):
    """P(Y > t) = (minimum/t)^exponent for t >= minimum; minimum > 0 in seconds, exponent > 0.

    All means are infinite for exponent <= 1.  For 1 < exponent <= 2 the variance is infinite, and a Monte-Carlo
    estimate of the maximum has no error bar.  The value of ``nested_lattices`` is within 1e-6 up to 1000 steps.  Under
    ``PersistentStragglers`` one lattice is used, up to 1.4e-3 off at exponent 1.5 and tau = 1000.  Averaging tau steps
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
    def distribution(self) -> Any:
        return _frozen("pareto", self.exponent, loc=0.0, scale=self.minimum)

    def excess(self, t: float) -> float:
        """Return t times the tail over (exponent - 1); infinite for exponent <= 1."""
        return t * float(self.sf(t)) / (self.exponent - 1) if self.exponent > 1 else math.inf

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.minimum * (1 + rng.pareto(self.exponent, shape))

    def single_max(self, m: int) -> float:
        """Return x_m Gamma(m+1) Gamma(1-1/a)/Gamma(m+1-1/a): the integral of t d(F^m) is a beta function."""
        from scipy.special import gammaln

        b = 1 - 1 / self.exponent
        return self.minimum * math.exp(float(gammaln(m + 1) + gammaln(b) - gammaln(m + b)))


@dataclass(frozen=True, init=False)
class Empirical(Law):
    """Each step takes one of the measured times (seconds, >= 0), all equally likely.

    This is a plug-in law.  The maximum over m workers never exceeds the largest sample, so it is biased downward unless
    there are many more samples than m.  ``bounds.estimate.expected_max_of_samples`` is an unbiased estimate of a single
    step's maximum.  Do not pool workers of different speed.

    Parameters
    ----------
    samples : iterable of float
        Measured times, shape (n,).

    Raises
    ------
    ValueError
        For no sample, or for one that is negative, infinite or nan.
    """

    samples: tuple[float, ...]

    def __init__(self, samples: Iterable[float]) -> None:
        values = tuple(sorted(nonnegative("each sample", value) for value in samples))
        if not values:
            raise ValueError("an empirical law needs at least one sample; got none")
        object.__setattr__(self, "samples", values)

    @cached_property
    def _sorted(self) -> np.ndarray:
        return np.array(self.samples)

    @property
    def mean_s(self) -> float:
        """The sample mean."""
        return float(self._sorted.mean())

    @property
    def sd_s(self) -> float:
        """The standard deviation of the resampling law (divisor n)."""
        return float(self._sorted.std())

    @property
    def skewness(self) -> float:
        """The third standardised sample moment; 0 if all samples agree."""
        centred = self._sorted - self.mean_s
        return float((centred**3).mean()) / self.sd_s**3 if self.sd_s > 0 else 0.0

    @property
    def lower_s(self) -> float:
        """The smallest sample."""
        return self.samples[0]

    @property
    def upper_s(self) -> float:
        """The largest sample."""
        return self.samples[-1]

    def sf(self, t: Any) -> np.ndarray:
        """Return the share of samples beyond t."""
        return 1 - np.searchsorted(self._sorted, np.asarray(t, float), side="right") / len(self.samples)

    def excess(self, t: float) -> float:
        """Return the mean of what exceeds t."""
        return float(np.maximum(self._sorted - t, 0).mean())

    def quantile(self, tail: float) -> float:
        """Return the smallest sample exceeded with probability at most ``tail``."""
        return self.samples[max(int(np.ceil((1 - tail) * len(self.samples))) - 1, 0)]

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return independent draws with replacement."""
        return rng.choice(self._sorted, shape)

    def sum_law(self, tau: int) -> Law | None:
        """Return a constant if all samples agree."""

        return Constant(tau * self.lower_s) if self.lower_s == self.upper_s else super().sum_law(tau)

    def lattice(self, width_s: float, cells: int) -> np.ndarray:
        """Return every sample split between its two neighbouring lattice points."""
        position = (self._sorted - self.lower_s) / width_s
        below = np.floor(position).astype(int)
        share = (position - below) / len(self.samples)
        masses = np.bincount(below, 1 / len(self.samples) - share, cells + 1)
        return (masses + np.bincount(below + 1, share, cells + 1)[: masses.size])[:cells]

    def single_max(self, m: int) -> float:
        """Return the sum over order statistics x_(j) of ((j/n)^m - ((j-1)/n)^m) x_(j)."""
        return float(order_weights(len(self.samples), m) @ self._sorted)

    def expected_max_above(self, floor_s: float, *, m: int, tau: int = 1) -> float:
        """Return the expectation: for single steps that of samples raised to the floor; else by convolution."""
        tau, floor_s = positive_integer("tau", tau), nonnegative("floor_s", floor_s)
        if tau == 1:
            return Empirical(np.maximum(self._sorted, floor_s)).expected_max(m=m)
        if not tau * self.lower_s < floor_s < tau * self.upper_s:
            return super().expected_max_above(floor_s, m=m, tau=tau)
        waiting_s = waiting_below_of_sum(self, tau, positive_integer("m", m), floor_s)
        return max(floor_s, tau * self.expected_max(m=m, tau=tau) + waiting_s)
