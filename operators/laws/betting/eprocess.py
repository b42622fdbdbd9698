"""Anytime-valid tests of a claim: bets that cannot win on average if the claim is true.

Let e be the error of one draw over ``|x|`` and s^2 the claimed bound of ``E|e|^2``.  For kappa >= 0 put ::

    f = 1 + lambda <e, v> + kappa (|e|^2 - s^2),     |v| = 1.

If E<e, v> = 0 and ``E|e|^2 <= s^2``, then E f <= 1; and f >= 1 - kappa s^2 - lambda^2 / (4 kappa) >= 0 for small
lambda, because ``|e|^2 >= <e, v>^2``.  So the product of f over draws is a nonnegative supermartingale, and it exceeds
1/level at any time with probability at most ``level`` (Ville 1939; the betting view: Waudby-Smith and Ramdas 2024).  No
bound on single draws is needed, and where the claimed constant is reached the last term costs nothing.  Wealth is
averaged over (v, lambda, kappa), which keeps it a supermartingale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from typing import Any, Protocol

import numpy as np

Real = float | np.ndarray
SLACK = 2.0**-20  # binary32 rounding allowed in a mean or an error, relative to |x|
_STAKES = (0.5, 0.1, 0.02, 0.004)  # kappa s^2
_TILT_SHARES = (1.0, 0.3, 0.1)  # lambda over its largest value
_EXCESS_STAKES = (0.9, 0.5, 0.1, 0.02, 0.004)


class Peak:
    """The largest logarithm of a capital so far, which is started at 1."""

    peak = 0.0

    def reached(self, logs: Any) -> None:
        """Note the logarithm of the capital, or of several shares of it, shape (n,)."""
        self.peak = max(self.peak, float(np.logaddexp.reduce(logs)))

    def rejects(self, level: float) -> bool:
        """Return whether the capital has ever reached 1/level."""
        return self.peak >= -log(level)


class Wealth(Peak):
    """The mean capital of several bets, started at 1."""

    def __init__(self, bets: int) -> None:
        self.logs = np.zeros(bets)

    def multiply(self, factors: np.ndarray) -> None:
        """Pay out a batch of draws: factors >= 0, shape (n, bets)."""
        with np.errstate(divide="ignore"):
            paths = self.logs + np.cumsum(np.log(factors), axis=0)
        self.logs = paths[-1]
        top = paths.max(axis=1)
        lift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            mean = lift + np.log(np.exp(paths - lift[:, None]).mean(axis=1))
        self.reached([mean.max()])


class DirectionBets:
    """Tests E e = 0 under ``E|e|^2`` <= second_moment, along fixed directions and one learnt from earlier batches.

    Parameters
    ----------
    second_moment : float
        s^2 >= 0.
    directions : ndarray
        Unit vectors, shape (m, d), float64.
    """

    def __init__(self, second_moment: float, directions: np.ndarray) -> None:
        self.s2 = inflated(second_moment)
        self.directions = directions
        self.sum = np.zeros(directions.shape[1])
        share = np.repeat(_STAKES, len(_TILT_SHARES))
        kappa = share / self.s2
        tilt = largest_lambda(kappa, share) * np.tile(_TILT_SHARES, len(_STAKES))
        self.kappa = np.concatenate([kappa, kappa])
        self.tilt = np.concatenate([tilt, -tilt])
        self.wealth = Wealth((len(directions) + 1) * self.kappa.size)

    def update(self, errors: np.ndarray) -> None:
        """Bet on a batch of errors over ``|x|``: shape (n, d), float64."""
        length = np.linalg.norm(self.sum)
        learnt = self.sum / length if length > 0 else self.directions[0]
        along = errors @ np.vstack([self.directions, learnt]).T
        excess = (errors**2).sum(axis=1) - self.s2
        factors = 1 + self.tilt * along[:, :, None] - np.abs(self.tilt) * SLACK + self.kappa * excess[:, None, None]
        self.wealth.multiply(np.maximum(factors, 0.0).reshape(len(errors), -1))
        self.sum += errors.sum(axis=0)


class ExcessBets:
    """Tests E y <= mean for draws y >= 0 (squared errors, message lengths)."""

    def __init__(self, mean: float) -> None:
        self.mean = mean
        self.kappa = np.array(_EXCESS_STAKES) / mean
        self.wealth = Wealth(self.kappa.size)

    def update(self, draws: np.ndarray) -> None:
        """Bet on a batch of draws: shape (n,), float64."""
        self.wealth.multiply(1 + self.kappa * (draws[:, None] - self.mean))


def inflated(second_moment: float) -> float:
    """Return the claimed second moment with binary32 rounding allowed: (s + slack)^2."""
    return float(np.sqrt(second_moment) + SLACK) ** 2


def largest_lambda(kappa: np.ndarray, stake: np.ndarray) -> np.ndarray:
    """Return the largest lambda with 1 - lambda slack - stake - lambda^2 / (4 kappa) >= 0, stake = kappa s^2."""
    return 2 * kappa * (np.sqrt(SLACK**2 + (1 - stake) / kappa) - SLACK)


# -- The capital of one law: bets that run through the draws of all vectors, and bets on one vector each -------
# A weighted mean of nonnegative supermartingales is one, so the level is paid once for all of them.

TOGETHER = 0.5  # share of the capital that is bet on all vectors at once; the rest is divided among the vectors
LEAST_FACTOR = 1e-300


class Ledger(Peak):
    """Logarithms of what every bet has grown to; each group of bets starts with its share of the capital.

    Parameters
    ----------
    together : tuple of int
        Numbers of bets in the groups that run through all vectors.
    own : list of tuple of int
        For every vector, the numbers of bets in its groups.
    """

    def __init__(self, together: tuple[int, ...], own: list[tuple[int, ...]]) -> None:
        self.together = [np.full(n, log(TOGETHER / len(together) / n)) for n in together]
        share = (1 - TOGETHER) / max(1, len(own))
        self.own = [[np.full(n, log(share / len(groups) / n)) for n in groups] for groups in own]
        self._totals = [_log_sum(groups) for groups in self.own]

    def pay_own(self, vector: int, group: int, growth: np.ndarray) -> None:
        """Add the log-growth of a batch to the bets of one vector's group: shape (bets,)."""
        self.own[vector][group] = self.own[vector][group] + growth

    def pay_together(self, group: int, growth: np.ndarray) -> None:
        """Add the log-growth of a batch to a group that runs through all vectors: shape (bets,)."""
        self.together[group] = self.together[group] + growth

    def close(self, vector: int) -> None:
        """End a batch of one vector: take the whole capital down."""
        self._totals[vector] = _log_sum(self.own[vector])
        self.reached([_log_sum(self.together), *self._totals])

    def richest(self) -> int:
        """Return the vector on which the most has been won."""
        return int(np.argmax(self._totals)) if self._totals else 0

    def growth(self, vector: int) -> float:
        """Return log-capital of the bets on one vector."""
        return self._totals[vector]


def log_growth(factors: np.ndarray) -> np.ndarray:
    """Return the sums of the logarithms over a batch, shape (n, ...) -> (...); a factor below zero by rounding counts
    as 0.
    """
    return np.log(np.maximum(factors, LEAST_FACTOR)).sum(axis=0)


def _log_sum(groups: list[np.ndarray]) -> float:
    return float(np.logaddexp.reduce(np.concatenate([g.ravel() for g in groups])))


# -- Bets on the mean of a nonnegative quantity at many vectors: squared errors, message lengths ---------------

STAKES = np.array([0.9, 0.5, 0.1, 0.02, 0.004])


class SizeBets:
    """Tests E y <= mean_j (``ceilings`` None), or E y >= mean_j where 0 <= y <= ceiling_j, at vectors j = 0, 1, ....

    A draw above its ceiling counts as the ceiling.

    Parameters
    ----------
    means : list of float
        Positive.
    """

    def __init__(self, means: list[float], sizes: list[int], ceilings: list[float] | None = None) -> None:
        self.means, self.ceilings = means, ceilings
        self.together = [d > 1 for d in sizes]
        self.ledger = Ledger((STAKES.size,), [(STAKES.size,) for _ in means])
        self.draws: list[tuple[int, np.ndarray]] = []
        self.totals = np.zeros(len(means))
        self.counts = np.zeros(len(means), int)

    def update(self, vector: int, y: np.ndarray) -> None:
        """Bet on a batch of draws at one vector: shape (n,), float64."""
        growth = log_growth(self.factors(vector, y))
        self.ledger.pay_own(vector, 0, growth)
        if self.together[vector]:
            self.ledger.pay_together(0, growth)
        self.ledger.close(vector)
        self.draws.append((vector, y))
        self.totals[vector] += y.sum()
        self.counts[vector] += y.size

    def factors(self, vector: int, y: np.ndarray) -> np.ndarray:
        """Return the payoff of each stake at each draw: shape (n, stakes)."""
        mean = self.means[vector]
        if self.ceilings is None:
            return 1 + STAKES / mean * (y[:, None] - mean)
        ceiling = self.ceilings[vector]
        return 1 + STAKES / max(ceiling - mean, mean) * (mean - np.minimum(y, ceiling)[:, None])

    def ratio(self, vector: int) -> float:
        """Return the mean so far over the claimed one."""
        return float(self.totals[vector] / max(1, self.counts[vector]) / self.means[vector])

    def overall_ratio(self) -> float:
        """Return the mean over all draws of y over its claimed mean."""
        return float((self.totals / np.array(self.means)).sum() / max(1, self.counts.sum()))


# -- How much to bet: the stake that would grow fastest if the bias were of a supposed size, from the draws so far
# A bet pays 1 + lambda ``<e, v> + kappa (|e|^2 - s^2)``.  Every choice made before a draw leaves it fair, so this may
# use any estimate of how it would grow; here the first two moments of the payoff.

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
    kappa, tilt = grid(s2)
    sizes = moments.mean_square(s2) - s2, moments.spread(s2)
    growth = expected_growth(bias[:, None], kappa, tilt, *sizes, variance, covariance)
    best = growth.argmax(axis=1)
    gain = growth[np.arange(bias.size), best]
    on = gain > 0
    return np.where(on, tilt[best], 0.0), np.where(on, kappa[best], 0.0), np.where(on, gain, 0.0)


def expected_growth(
    bias: np.ndarray, kappa: np.ndarray, tilt: np.ndarray, excess: Real, spread: Real, variance: Real, covariance: Real
) -> np.ndarray:
    """Return the expected log-growth a draw of bets on ``|E e|`` = bias, from the first two moments of the payoff.

    Parameters
    ----------
    excess, spread : float or ndarray
        The mean of ``|e|^2`` less s^2, and the variance of ``|e|^2``.
    """
    noise = tilt**2 * variance + kappa**2 * spread + 2 * tilt * kappa * covariance
    mean = np.maximum(bias * tilt + (kappa * excess - tilt * SLACK), -0.99)
    return np.log1p(mean) - 0.5 * noise / (1 + np.maximum(mean, 0)) ** 2


@lru_cache(maxsize=1024)
def grid(s2: float) -> tuple[np.ndarray, np.ndarray]:
    """Return every (kappa, lambda) that is tried."""
    share = np.repeat(_SHARES, _TILTS.size)
    kappa = share / s2
    return kappa, np.tile(_TILTS, _SHARES.size) * largest_lambda(kappa, share)
