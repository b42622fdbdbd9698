"""Y and D from measured rounds, with intervals, and the seconds per iteration that they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bounds.estimate import Estimate, batch_means, delay_by_fenced_regression, mean_estimate
from bounds.runtime import RuntimeModel, StepTime

LEVEL = 0.95
ADDITIVE = "takes a round for the slowest worker's steps followed by one averaging; correlated rounds need batches"


@dataclass(frozen=True)
class RoundFit:
    """Parameters
    ----------
    step_s : Estimate, seconds
        Y of round = tau Y + D, with an interval.
    delay_s : Estimate, seconds
        D of it, with an interval.
    """

    step_s: Estimate
    delay_s: Estimate

    def seconds_per_iteration(self, tau: int) -> float:
        """Return Y + D/tau.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        """
        return self.step_s.value + self.delay_s.value / tau


def slowest_seconds(step_s: np.ndarray, tau: int) -> np.ndarray:
    """Return the time of the slowest worker's tau steps in every round, in seconds, shape (rounds,).

    Parameters
    ----------
    step_s : ndarray, seconds
        Shape (m, steps), rounds one after the other.
    tau : int
        Local steps between two averagings.

    Raises
    ------
    ValueError
        If tau does not divide the steps.
    """
    times = np.asarray(step_s, np.float64)
    if times.ndim != 2 or tau < 1 or times.shape[1] % tau:
        raise ValueError(f"step_s must have shape (m, a multiple of tau = {tau}); got shape {times.shape}")
    return times.reshape(times.shape[0], -1, tau).sum(axis=2).max(axis=0)


def delay_from_rounds(
    round_s: Sequence[float] | np.ndarray, step_s: np.ndarray, *, tau: int, batch: int = 1, level: float = LEVEL
) -> Estimate:
    """Return D as the part of a round that the slowest worker's steps do not explain.

    Parameters
    ----------
    round_s : sequence of float or ndarray, seconds
        From the end of one averaging to the end of the next, shape (rounds,).
    step_s : ndarray, seconds
        As above.
    tau : int
        Local steps between two averagings.
    batch : int, optional
        Rounds averaged into one value, for an interval that holds in spite of serial correlation.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For other shapes.

    Notes
    -----
    The wait for stragglers is in the slowest worker's time, so it is not in D.
    """
    rounds = np.asarray(round_s, np.float64)
    slowest = slowest_seconds(step_s, tau)
    if rounds.shape != slowest.shape:
        raise ValueError(f"needs one duration for each of the {slowest.size} rounds; got {rounds.size}")
    estimate = mean_estimate(batch_means(rounds - slowest, batch), level)
    return Estimate(estimate.value, estimate.interval, level, ADDITIVE)


def fit_rounds(taus: Sequence[int], round_s: Sequence[float], *, level: float = LEVEL) -> RoundFit:
    """Return Y and D from rounds of different length: the slope and the intercept of round = tau Y + D.

    Parameters
    ----------
    taus : sequence of int
        One of each for every round, shape (n,), n >= 3, two different taus at least; errors are taken as proportional
        to the time.  Y is one number only where the slowest worker's mean does not depend on tau, that is without
        stragglers.
    round_s : sequence of float, seconds
        One of each for every round, shape (n,), n >= 3, two different taus at least; errors are taken as proportional
        to the time.  Y is one number only where the slowest worker's mean does not depend on tau, that is without
        stragglers.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For fewer rounds or equal taus.
    """
    fitted = delay_by_fenced_regression(list(taus), round_s, level=level)
    return RoundFit(fitted.seconds_per_byte, fitted.latency_s)  # tau in place of bytes


def predicted_seconds_per_iteration(step: StepTime, delay_s: float, *, tau: int, m: int) -> float:
    """Return E max over m workers of the mean of tau steps, plus D / tau, in seconds.

    Parameters
    ----------
    step : StepTime
        Law of one step's time.
    delay_s : float, seconds
        Time of one averaging.
    tau : int
        Local steps between two averagings.
    m : int
        Number of workers.
    """
    return float(RuntimeModel(step=step, delay_s=delay_s, m=m).seconds_per_iteration(tau=tau))
