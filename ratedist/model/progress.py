"""How much of a synchronous step's progress is left when changes of several local steps are compressed.

A worker's change over tau steps of size eta is Delta, its mean D, and a batch's gradient falls by ``<g, D>`` along it.
On a quadratic with Hessian H the loss at a mean of changes falls by ``<g, D> - E Delta' H Delta/2`` exactly, so that
three numbers of the loss's unit decide: ``fall = <g, D>``, ``signal = D' H D`` and ``bend = E Delta_i' H Delta_i =
signal + noise`` of one worker.  ``docs/concepts/prediction.md`` derives what is written here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bounds import Interval
from bounds.estimate import Estimate, student_quantile

LEVEL = 0.95
MEANS = 9  # at most so many intervals make one prediction: signal and its cap, twice; error; loss; age; step's seconds
Number = int | float | Fraction


def part_of(level: float) -> float:
    """Return the confidence of each interval that makes a prediction of this level.

    Parameters
    ----------
    level : float
        Confidence of the prediction.
    """
    return 1 - (1 - level) / MEANS


@dataclass(frozen=True, eq=False)
class RoundRows:
    """What a path tells of rounds of tau local steps, one row a moment.

    Parameters
    ----------
    falls : ndarray, shape (q,)
        Of a batch's gradient along the change, in units of the loss.
    bends : ndarray, shape (q,)
        Curvature along one worker's change, noise included, in units of the loss.
    signal : Estimate
        Curvature along the mean change, over the fall.
    level : float, optional
        Confidence of a prediction from these.
    """

    falls: np.ndarray
    bends: np.ndarray
    signal: Estimate
    level: float = LEVEL


@dataclass(frozen=True, eq=False)
class LocalPath:
    """What one worker has measured along its path.

    Parameters
    ----------
    taus : tuple of int
        Local steps after which a gradient was taken again, shape (p,).
    falls : ndarray, shape (q, p)
        ``<g, x - x'>`` of batches' gradient g and the change of the parameters, one row a moment.
    bends : ndarray, shape (q, p)
        ``<g - g', x - x'>`` with the same batch's gradient after these steps.
    drops : ndarray, shape (q, p)
        ``<g - g', g>``.
    gradient2 : ndarray, shape (q,)
        Unbiased for the squared norm of the mean gradient.
    level : float, optional
        Confidence of a prediction from these.
    """

    taus: tuple[int, ...]
    falls: np.ndarray
    bends: np.ndarray
    drops: np.ndarray
    gradient2: np.ndarray
    level: float = LEVEL

    def of_round(self, tau: int) -> RoundRows:
        """Return what a round of tau steps does; between the numbers looked at, linear in what there is a step.

        Parameters
        ----------
        tau : int
            Local steps, at most the most that were looked at.

        Raises
        ------
        ValueError
            For more.
        """
        if not 1 <= tau <= self.taus[-1]:
            raise ValueError(
                f"tau must be 1 to {self.taus[-1]}, the local steps that the pilot has looked at; got tau = {tau}: "
                "make a pilot with longer taus"
            )
        falls, bends = (rows @ self._weights(tau) for rows in (self.falls, self.bends))
        lost = [self.drops @ self._weights(k) for k in range(2 * tau)]
        turned = np.sum(lost[tau:], axis=0) - np.sum(lost[:tau], axis=0)
        part = part_of(self.level)
        share = ratio_estimate(turned, tau * self.gradient2 - np.sum(lost[:tau], axis=0), part)
        return RoundRows(falls, bends, _between(share, ratio_estimate(bends, falls, part)), self.level)

    def _weights(self, steps: int) -> np.ndarray:
        """Return weights of the columns: linear in what there is a step; beyond the last column, in the whole of it."""
        columns, weights = len(self.taus), np.zeros(len(self.taus))
        if columns == 1 or not steps:
            weights[0] = steps / self.taus[0]
            return weights
        right = min(max(int(np.searchsorted(self.taus, steps)), 1), columns - 1)
        before, after = self.taus[right - 1], self.taus[right]
        share = (steps - before) / (after - before)
        whole_of_it = steps > after
        weights[right - 1] = (1 - share) * (1 if whole_of_it else steps / before)
        weights[right] = share * (1 if whole_of_it else steps / after)
        return weights


def _between(share: Estimate, most: Estimate) -> Estimate:
    """Return an estimate that is known to lie between 0 and another one."""
    top = max(most.value, 0.0)
    value = min(max(share.value, 0.0), top)
    low, high = (max(float(end), 0.0) for end in (share.interval.lo, share.interval.hi))
    high = min(high, max(float(most.interval.hi), 0.0))
    return Estimate(value, Interval(min(low, value), max(high, value)), share.level)


def ratio_estimate(above: np.ndarray, below: np.ndarray, level: float) -> Estimate:
    """Return a quotient of two means, with Fieller's interval; without ends where the lower mean could be 0.

    Parameters
    ----------
    above, below : ndarray, shape (q,)
        Of the same moments.
    level : float
        Confidence of the interval.
    """
    top, bottom = float(above.mean()), float(below.mean())
    value = top / bottom if bottom > 0 else math.inf
    if above.size < 2 or bottom <= 0:
        return Estimate(value, Interval(-math.inf, math.inf), level)
    freedom, above, below = above.size - 1, above - top, below - bottom
    t2 = student_quantile(level, freedom) ** 2 / above.size / freedom
    below2, both, above2 = float(below @ below), float(above @ below), float(above @ above)
    a, b, c = bottom**2 - t2 * below2, top * bottom - t2 * both, top**2 - t2 * above2
    if a <= 0:
        return Estimate(value, Interval(-math.inf, math.inf), level)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Estimate(value, Interval(min((b - root) / a, value), max((b + root) / a, value)), level)


@dataclass(frozen=True)
class Averaging:
    """Whose messages are averaged.

    Parameters
    ----------
    workers : int
        That compute gradients.
    senders : int
        That compress: all workers, or their nodes.
    twice : bool
        Whether the mean is compressed once more before it returns.
    """

    workers: int
    senders: int
    twice: bool = False

    def sides(self, rows: RoundRows, signal: float, omega: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return twice what a synchronous round gains of the loss, and twice what errors of messages lose, by moment.

        Parameters
        ----------
        rows : RoundRows
            Of the round.
        signal : float
            Curvature along the mean change, over the fall.
        omega : float, optional
            Relative squared error of a message, unbiased.
        """
        curved = signal * rows.falls
        noise, together = rows.bends - curved, self.workers / self.senders
        mean_bend = curved + noise / self.workers
        lost = omega * (curved + noise / together) / self.senders
        if self.twice:
            lost = lost + omega * (mean_bend + lost)
        return 2 * rows.falls - mean_bend, lost


def kept_with_errors(rows: RoundRows, omega: Estimate, averaging: Averaging) -> Estimate | None:
    """Return what unbiased errors of the messages leave of a synchronous round's progress; None where noise hides it.

    Parameters
    ----------
    rows : RoundRows
        Of rounds of as many steps.
    omega : Estimate
        Relative squared error of a message.
    averaging : Averaging
        Whose messages they are.

    Notes
    -----
    What is lost rises in the error and in the signal, so that the interval is that between their ends.
    """
    lost = [
        _lost(rows, signal, error, averaging)
        for signal, error in (
            (rows.signal.interval.lo, omega.interval.lo),
            (rows.signal.value, omega.value),
            (rows.signal.interval.hi, omega.interval.hi),
        )
    ]
    if not math.isfinite(lost[1].value):
        return None
    value = _share(1 - lost[1].value)
    low, high = _share(1 - float(lost[2].interval.hi)), _share(1 - float(lost[0].interval.lo))
    return Estimate(value, Interval(min(low, value), max(high, value)), rows.level)


def _lost(rows: RoundRows, signal: Number, omega: Number, averaging: Averaging) -> Estimate:
    if not (math.isfinite(signal) and math.isfinite(omega)):
        return Estimate(math.inf, Interval(-math.inf, math.inf), rows.signal.level)
    gained, lost = averaging.sides(rows, float(signal), float(omega))
    return ratio_estimate(lost, gained, rows.signal.level)


def kept_by_staleness(rows: RoundRows, step: RoundRows, tau: int, averaging: Averaging) -> Estimate:
    """Return a round's progress over that of as many steps from its start: all that old gradients could cost.

    Parameters
    ----------
    rows : RoundRows
        Of rounds of tau steps.
    step : RoundRows
        Of a single one.
    tau : int
        Local steps.
    averaging : Averaging
        Of the workers.
    """

    def quotient(signal: Number, of_step: Number) -> Estimate:
        if not (math.isfinite(signal) and math.isfinite(of_step)):
            return Estimate(0.0, Interval(-math.inf, math.inf), rows.signal.level)
        gained, single = averaging.sides(rows, float(signal))[0], averaging.sides(step, float(of_step))[0]
        return ratio_estimate(gained, tau * single, rows.signal.level)

    low = quotient(rows.signal.interval.hi, step.signal.interval.lo)
    high = quotient(rows.signal.interval.lo, step.signal.interval.hi)
    value = _share(quotient(rows.signal.value, step.signal.value).value)
    ends = _share(float(low.interval.lo)), _share(float(high.interval.hi))
    return Estimate(value, Interval(min(ends[0], value), max(ends[1], value)), rows.level)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def gradient2_of(small_norms2: Sequence[float], large_norms2: Sequence[float], moments: int) -> np.ndarray:
    """Return samples of the squared mean gradient, one a moment, each the mean of all ranks'.

    Parameters
    ----------
    small_norms2, large_norms2 : sequence of float
        ``|g|^2`` of single batches and of the mean of two, ranks one after the other, shape (ranks*moments,).
    moments : int
        Of each rank.
    """
    samples = 2 * np.asarray(large_norms2, float) - np.asarray(small_norms2, float)
    return samples.reshape(-1, moments).mean(axis=0)
