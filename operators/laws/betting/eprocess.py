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

from math import log

import numpy as np

SLACK = 2.0**-20  # binary32 rounding allowed in a mean or an error, relative to |x|
_STAKES = (0.5, 0.1, 0.02, 0.004)  # kappa s^2
_TILTS = (1.0, 0.3, 0.1)  # lambda over its largest value
_EXCESS_STAKES = (0.9, 0.5, 0.1, 0.02, 0.004)


class Wealth:
    """The mean capital of several bets, started at 1."""

    def __init__(self, bets: int) -> None:
        self.logs = np.zeros(bets)
        self.peak = 0.0  # largest log of the mean capital so far

    def multiply(self, factors: np.ndarray) -> None:
        """Pay out a batch of draws: factors >= 0, shape (n, bets)."""
        with np.errstate(divide="ignore"):
            paths = self.logs + np.cumsum(np.log(factors), axis=0)
        self.logs = paths[-1]
        top = paths.max(axis=1)
        lift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            mean = lift + np.log(np.exp(paths - lift[:, None]).mean(axis=1))
        self.peak = max(self.peak, float(mean.max()))

    def rejects(self, level: float) -> bool:
        """Return whether the capital has ever reached 1/level."""
        return self.peak >= -log(level)


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
        share = np.repeat(_STAKES, len(_TILTS))
        kappa = share / self.s2
        tilt = largest_lambda(kappa, share) * np.tile(_TILTS, len(_STAKES))
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
