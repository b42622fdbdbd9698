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
    """step_s, delay_s : Y and D of round = tau Y + D, with intervals."""

    step_s: Estimate
    delay_s: Estimate

    def seconds_per_iteration(self, tau: int) -> float:
        """Y + D/tau."""
        return self.step_s.value + self.delay_s.value / tau


def slowest_seconds(step_s: np.ndarray, tau: int) -> np.ndarray:
    """The time of the slowest worker's tau steps in every round, in seconds, shape (rounds,).

    step_s : shape (m, steps), rounds one after the other.  Raises ValueError if tau does not divide the steps.
    """
    times = np.asarray(step_s, np.float64)
    if times.ndim != 2 or tau < 1 or times.shape[1] % tau:
        raise ValueError(f"step_s must have shape (m, a multiple of tau = {tau}); got shape {times.shape}")
    return times.reshape(times.shape[0], -1, tau).sum(axis=2).max(axis=0)


def delay_from_rounds(
    round_s: Sequence[float] | np.ndarray, step_s: np.ndarray, *, tau: int, batch: int = 1, level: float = LEVEL
) -> Estimate:
    """D as the part of a round that the slowest worker's steps do not explain.

    round_s : from the end of one averaging to the end of the next, shape (rounds,).  step_s : as above.
    batch : rounds averaged into one value, for an interval that holds in spite of serial correlation.
    The wait for stragglers is in the slowest worker's time, so it is not in D.
    Raises ValueError for other shapes.
    """
    rounds = np.asarray(round_s, np.float64)
    slowest = slowest_seconds(step_s, tau)
    if rounds.shape != slowest.shape:
        raise ValueError(f"needs one duration for each of the {slowest.size} rounds; got {rounds.size}")
    estimate = mean_estimate(batch_means(rounds - slowest, batch), level)
    return Estimate(estimate.value, estimate.interval, level, ADDITIVE)


def fit_rounds(taus: Sequence[int], round_s: Sequence[float], *, level: float = LEVEL) -> RoundFit:
    """Y and D from rounds of different length: the slope and the intercept of round = tau Y + D.

    taus, round_s : one of each for every round, shape (n,), n >= 3, two different taus at least; errors are taken as
    proportional to the time.  Y is one number only where the slowest worker's mean does not depend on tau, that is
    without stragglers.  Raises ValueError for fewer rounds or equal taus.
    """
    fitted = delay_by_fenced_regression(list(taus), round_s, level=level)
    return RoundFit(fitted.seconds_per_byte, fitted.latency_s)  # tau in place of bytes


def predicted_seconds_per_iteration(step: StepTime, delay_s: float, *, tau: int, m: int) -> float:
    """E max over m workers of the mean of tau steps, plus D / tau, in seconds."""
    return float(RuntimeModel(step=step, delay_s=delay_s, m=m).seconds_per_iteration(tau=tau))
