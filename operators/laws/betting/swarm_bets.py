"""Bets on draws at vectors that are never repeated: pooled over all, and over each kind of vector.

Errors count over the root of what is claimed at their own length, so that draws at different lengths are comparable.
A draw pays into the capital of all draws and into that of each of its labels (a range of lengths, a place, a
circumstance).  A weighted mean of nonnegative supermartingales is one, so the level is paid once; which labels are
drawn next may depend on the capital so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from .eprocess import LEAST_FACTOR, SLACK, STAKES, Peak, largest_lambda, stakes
from .mean_bets import SUPPOSED

POOLED = 0.25  # share of the capital that is bet on all draws alike
_SHARES = np.array([0.5, 0.2, 0.05])  # kappa s^2 of the bets on a single vector
_WINS = 0.05  # growth a draw from which on they go on
_MOST_AT_ONE = 500  # draws
_PRIOR = 2.0  # draws that the worst case counts for
_TELLING = 1.5  # gain of a label that chance seldom gives


@dataclass
class Seen:
    """Moments of the draws at one kind of vector, of a = <e, v>/s and q = ``|e|^2/s^2``, as ``stakes`` needs them."""

    n: int = 0
    along: float = 0.0
    along2: float = 0.0
    square: float = 0.0
    fourth: float = 0.0
    cross: float = 0.0

    def add(self, a: float, q: float) -> None:
        """Count one draw."""
        self.n += 1
        self.along, self.along2 = self.along + a, self.along2 + a * a
        self.square, self.fourth, self.cross = self.square + q, self.fourth + q * q, self.cross + a * q

    def mean_square(self, s2: float) -> float:
        """Return the mean of ``|e|^2``, shrunk to s2 while little has been seen."""
        return s2 * min(1.0, (self.square + _PRIOR) / (self.n + _PRIOR))

    def spread(self, s2: float) -> float:
        """Return the variance of ``|e|^2``."""
        mean = self.square / max(1, self.n)
        return s2**2 * (max(self.fourth - self.n * mean**2, 0.0) + _PRIOR) / (self.n + _PRIOR)

    def variance_along(self, s2: float) -> float:
        """Return the variance of <e, v>."""
        mean = self.along / max(1, self.n)
        return s2 * (max(self.along2 - self.n * mean**2, 0.0) + _PRIOR) / (self.n + _PRIOR)

    def covariance(self, s2: float) -> float:
        """Return the covariance of <e, v> and ``|e|^2``."""
        return s2**1.5 * (self.cross - self.along * self.square / max(1, self.n)) / (self.n + _PRIOR)


class Capital(Peak):
    """Logarithms of the capital of one family of bets, in all and for each label.

    Parameters
    ----------
    families : list of list of str
        The labels; a draw has at most one of each family.
    bets : int
        Number of stakes.
    """

    def __init__(self, families: list[list[str]], bets: int) -> None:
        self.pooled = np.full(bets, log(POOLED / bets))
        share = (1 - POOLED) / len(families)
        self.by_label = {
            label: np.full(bets, log(share / len(family) / bets)) for family in families for label in family
        }
        self.starts = {label: float(np.logaddexp.reduce(logs)) for label, logs in self.by_label.items()}

    def pay(self, labels: list[str], factors: np.ndarray) -> None:
        """Pay one draw: factors >= 0, shape (bets,)."""
        growth = np.log(np.maximum(factors, LEAST_FACTOR))
        self.pooled = self.pooled + growth
        for label in labels:
            self.by_label[label] = self.by_label[label] + growth
        self.reached(np.concatenate([self.pooled, *self.by_label.values()]))

    def gains(self) -> dict[str, float]:
        """Return the growth of the logarithm of each label's capital."""
        return {label: float(np.logaddexp.reduce(logs)) - self.starts[label] for label, logs in self.by_label.items()}


class Winning:
    """Bets on a bias along one vector, of either sign, as long as one of them wins.

    Parameters
    ----------
    s2 : float
        What is claimed of ``|e|^2``, > 0.
    """

    def __init__(self, s2: float) -> None:
        kappa = _SHARES / s2
        tilt = largest_lambda(kappa, _SHARES)
        self.s2, self.kappa, self.tilt = s2, np.tile(kappa, 2), np.concatenate([tilt, -tilt])
        self.logs = np.full(self.kappa.size, -log(self.kappa.size))
        self.n, self.sum = 0, 0.0

    def pay(self, along: float, square: float) -> None:
        """Bet on one draw: <e, ``x/|x|>`` and ``|e|^2``, of errors over ``|x|``."""
        factors = 1 + self.tilt * along - np.abs(self.tilt) * SLACK + self.kappa * (square - self.s2)
        self.logs = self.logs + np.log(np.maximum(factors, LEAST_FACTOR))
        self.n, self.sum = self.n + 1, self.sum + along

    def capital(self) -> float:
        """Return the logarithm of the capital."""
        return float(np.logaddexp.reduce(self.logs))

    def needed(self, level: float, vectors: int) -> float:
        """Return the logarithm of the capital that refutes the mean, where so many vectors share the level."""
        return -log(level) + log(vectors)

    def goes_on(self) -> bool:
        """Return whether a bet still wins."""
        return self.n < _MOST_AT_ONE and float(self.logs.max()) + log(self.logs.size) > _WINS * self.n


class SwarmBets:
    """Bets that E e has a part along x, and that ``E|e|^2`` exceeds what is claimed.

    Parameters
    ----------
    families : list of list of str
        The labels of the draws.
    """

    def __init__(self, families: list[list[str]]) -> None:
        self.mean = Capital(families, 2 * SUPPOSED.size)
        self.size = Capital(families, STAKES.size)
        self.moments: dict[str, Seen] = {}

    def update(self, labels: list[str], kind: str, along: float, square: float, s2: float, *, unbiased: bool) -> None:
        """Bet on one draw.

        Parameters
        ----------
        labels : list of str
            Into whose capital it pays.
        kind : str
            Draws of one kind have comparable moments.
        along, square : float
            <e, ``x/|x|>`` and ``|e|^2``, of errors over ``|x|``.
        s2 : float
            What is claimed of the second, > 0, with rounding allowed.
        unbiased : bool
            Whether a mean is claimed.
        """
        self.size.pay(labels, 1 + STAKES * (square / s2 - 1))
        if not unbiased:
            return
        moments = self.moments.setdefault(kind, Seen())
        variance, covariance = moments.variance_along(s2), moments.covariance(s2)
        up, down = (stakes(SUPPOSED, s2, moments, variance, side * covariance) for side in (1, -1))
        tilt, kappa = np.concatenate([up[0], -down[0]]), np.concatenate([up[1], down[1]])
        self.mean.pay(labels, 1 + tilt * along - np.abs(tilt) * SLACK + kappa * (square - s2))
        moments.add(along / sqrt(s2), square / s2)

    def richest(self, among: list[str]) -> str:
        """Return the label with the largest gain."""
        gains = self._gains()
        return max(among, key=lambda label: gains[label])

    def telling(self, among: list[str], label: str) -> str:
        """Return the label with the largest gain where it is more than chance, or the given one."""
        richest = self.richest(among)
        return richest if self._gains()[richest] > _TELLING else label

    def _gains(self) -> dict[str, float]:
        mean, size = self.mean.gains(), self.size.gains()
        return {label: max(gain, size[label]) for label, gain in mean.items()}

    def peak(self) -> float:
        """Return the logarithm of the largest capital so far."""
        return max(self.mean.peak, self.size.peak)

    def rejects(self, level: float) -> bool:
        """Return whether either capital has reached 2/level."""
        return self.mean.rejects(level / 2) or self.refutes_constant(level)

    def refutes_constant(self, level: float) -> bool:
        """Return whether the bets on the squared errors alone have reached 2/level."""
        return self.size.rejects(level / 2)
