"""Y and D from measured rounds, with intervals, and the seconds per iteration that they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bounds.estimate import Estimate, batch_means, delay_by_fenced_regression, mean_estimate
from bounds.runtime import RuntimeModel, StepTime

LEVEL = 0.95
ADDITIVE = "assumes round = slowest worker's steps + one averaging; correlated rounds need batches"


@dataclass(frozen=True)
class RoundFit:
    """Fit of round = tau Y + D.

    Parameters
    ----------
    step_s : Estimate, seconds
        Y with its interval.
    delay_s : Estimate, seconds
        D with its interval.
    """

    step_s: Estimate
    delay_s: Estimate

    def seconds_per_iteration(self, tau: int) -> float:
        """Return Y + D/tau.

        Parameters
        ----------
        tau : int
            Local steps per round, >= 1.
        """
        return self.step_s.value + self.delay_s.value / tau


def slowest_seconds(step_s: np.ndarray, tau: int) -> np.ndarray:
    """Return the time of the slowest worker's tau steps in every round, in seconds, shape (rounds,).

    Parameters
    ----------
    step_s : ndarray, seconds
        Step times, shape (m, steps), in order of the rounds.
    tau : int
        Local steps per round, a divisor of steps.

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
    """Return D as the part of a round beyond the slowest worker's steps.

    Parameters
    ----------
    round_s : sequence of float or ndarray, seconds
        Times from the end of one averaging to the end of the next, shape (rounds,).
    step_s : ndarray, seconds
        Step times, shape (m, steps), in order of the rounds.
    tau : int
        Local steps per round.
    batch : int, optional
        Rounds averaged into one value, so that the interval allows for serial correlation.
    level : float, optional
        Confidence level of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For other shapes.

    Notes
    -----
    The wait for slow workers is in the slowest worker's time and therefore not in D.
    """
    rounds = np.asarray(round_s, np.float64)
    slowest = slowest_seconds(step_s, tau)
    if rounds.shape != slowest.shape:
        raise ValueError(f"needs one duration for each of the {slowest.size} rounds; got {rounds.size}")
    estimate = mean_estimate(batch_means(rounds - slowest, batch), level)
    return Estimate(estimate.value, estimate.interval, level, ADDITIVE)


def fit_rounds(taus: Sequence[int], round_s: Sequence[float], *, level: float = LEVEL) -> RoundFit:
    """Return Y and D as slope and intercept of round = tau Y + D, from rounds of different length.

    Errors are assumed to be proportional to the time.  Y is one number only if the slowest worker's mean does not
    depend on tau, that is, without stragglers.

    Parameters
    ----------
    taus : sequence of int
        tau of every round, shape (n,), n >= 3, with at least two different values.
    round_s : sequence of float, seconds
        Time of every round, shape (n,).
    level : float, optional
        Confidence level of the interval, 0 < level < 1.

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
        Law of a step's time.
    delay_s : float, seconds
        Time of one averaging.
    tau : int
        Local steps per round.
    m : int
        Number of workers.
    """
    return float(RuntimeModel(step=step, delay_s=delay_s, m=m).seconds_per_iteration(tau=tau))
