"""Progress of local, compressed steps as a share of a synchronous step's.

A worker's change over tau steps of size eta is Delta, its mean D, and a batch's gradient falls by ``<g, D>`` along it.
On a quadratic with Hessian H the loss at a mean of changes falls by ``<g, D> - E Delta' H Delta/2`` exactly, so that
three numbers of the loss's unit decide: ``fall = <g, D>``, ``signal = D' H D`` and ``bend = E Delta_i' H Delta_i =
signal + noise`` of one worker.  ``docs/concepts/prediction.md`` derives what is written here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from statistics import NormalDist
from typing import Any

import numpy as np

from bounds import Interval
from bounds.estimate import Estimate, student_quantile

# -- progress of averaged changes ----------------------------------------------------------------------

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


# -- progress that noise hides -------------------------------------------------------------------------
# Before any trial a step of a choice is taken to be worth a synchronous one, within PRIOR, as in most trainings.  For a
# progress r the differences ``fall - r * synchronous fall`` of the moments have mean zero; Student's law of their mean
# over its error is what the trials say of r, also where the synchronous fall itself could be zero.

PRIOR, FREEDOM = 0.2, 3  # scale and freedom of Student's law of log(progress): both halves of study `prediction`
CLEAR = 0.05  # standard error of progress, relative to it above 1, below which a quotient of means stands for itself
LOGS = np.linspace(-3.5, 1.5, 1001)  # of progress: from 1/33 to 4.5
LEAST = 1e-12  # of a variance, relative to the squared synchronous fall
SHARES = (np.arange(100) + 0.5) / 100


def times_of(falls: Sequence[float], synchronous: Sequence[float]) -> tuple[float, float]:
    """Return the quotient of the mean synchronous fall and another mean fall, and its standard error.

    Parameters
    ----------
    falls, synchronous : sequence of float
        Of the loss over the same steps, one a moment; of the same moments.

    Returns
    -------
    tuple of (float, float)
        Both infinite where one of the means is not positive.
    """
    each, others = np.array(falls), np.array(synchronous)
    if min(each.mean(), others.mean()) <= 0:
        return math.inf, math.inf
    slower = float(others.mean() / each.mean())
    off = others / each.mean() - slower * each / each.mean()
    return slower, math.sqrt(float(off @ off) / (each.size * (each.size - 1)))


def hides(falls: Sequence[float], synchronous: Sequence[float]) -> bool:
    """Tell whether the standard error of progress is large, so that its quotient does not stand for itself.

    Parameters
    ----------
    falls, synchronous : sequence of float
        As of ``times_of``.
    """
    each, others = np.array(falls), np.array(synchronous)
    if others.mean() <= 0:
        return True
    progress = each.mean() / others.mean()
    off = (each - progress * others) / others.mean()
    return bool(math.sqrt(off @ off / (each.size * (each.size - 1))) > CLEAR * max(progress, 1.0))


def quantiles_of(falls: Sequence[float], synchronous: Sequence[float]) -> np.ndarray:
    """Return quantiles of how many times as many steps are needed, rising, one for each of ``SHARES``.

    Parameters
    ----------
    falls, synchronous : sequence of float
        As of ``times_of``.
    """
    if not hides(falls, synchronous):
        slower, error = times_of(falls, synchronous)
        two_sided = np.abs(2 * SHARES - 1)
        points = np.array([student_quantile(level, len(falls) - 1) for level in two_sided.tolist()])
        return np.maximum(slower + error * np.sign(SHARES - 0.5) * points, np.exp(-LOGS[-1]))
    each, others = np.array(falls), np.array(synchronous)
    off = each - np.exp(LOGS)[:, None] * others
    squares = off.var(axis=1, ddof=1) / each.size + LEAST * max(float(others.mean() ** 2), 1e-300)
    student = -each.size / 2 * np.log1p(off.mean(axis=1) ** 2 / squares / (each.size - 1))
    before = -(FREEDOM + 1) / 2 * np.log1p((LOGS / PRIOR) ** 2 / FREEDOM)
    weights = np.exp(student + before - (student + before).max())
    below = np.cumsum(weights) / weights.sum()
    return np.exp(-np.interp(1 - SHARES, below, LOGS))


def mean_quantiles(stretches: Sequence[np.ndarray]) -> np.ndarray:
    """Return quantiles of the mean over independent stretches.

    Parameters
    ----------
    stretches : sequence of ndarray
        Quantiles of each, for the same shares.
    """
    total = reduce(lambda a, b: np.quantile(np.add.outer(a, b), SHARES), stretches)
    return total / len(stretches)


# -- trial rounds --------------------------------------------------------------------------------------
# A round that is tried sees what no single gradient tells: different data, kinks, momentum, adaptive rates, residuals.
# ``docs/concepts/prediction.md`` says what its number is.

SYNCHRONOUS = ("", 1)
# Standard deviation of log(progress) of single trainings from that of trials, beyond that of the moments: UNSEEN, and
# FURTHER times the size of log(progress), because what slows a trial down goes on to change.  With both, intervals at
# 90 % hold 89 to 98 % of the single trainings whose progress differs by more than 10 %, in the design halves of studies
# `prediction`, `prediction-anew` and `prediction-others`.
UNSEEN, FURTHER = 0.08, 0.45
OF_TRIALS = "falls", "owed", "bits"  # one row a stretch, one entry a moment


@dataclass(frozen=True)
class RoundTrial:
    """What one choice has gained.

    Parameters
    ----------
    operator : str
        Its specification; "" without compression.
    tau : int
        Local steps between two averages.
    falls : tuple of tuple of float
        Of the loss on fresh batches over the steps of a trial, one row a stretch of training, one entry a moment; with
        what error feedback's residuals still owe.
    owed : tuple of tuple of float, optional
        The part of ``falls`` that residuals still owe, in the same shape; empty without residuals.
    bits : tuple of tuple of float, optional
        Bits per coordinate of a message, the mean over a trial, in the same shape; empty without compression.
    """

    operator: str
    tau: int
    falls: tuple[tuple[float, ...], ...]
    owed: tuple[tuple[float, ...], ...] = ()
    bits: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class RoundTrials:
    """What rounds have gained that were tried from the same points, on the same batches.

    Parameters
    ----------
    workers : int
        Whose models were averaged; messages were gathered.
    steps : int
        Local steps of a trial.
    rows : tuple of RoundTrial
        Of every choice; with synchronous uncompressed steps, operator "" and tau 1.
    """

    workers: int
    steps: int
    rows: tuple[RoundTrial, ...]

    @property
    def stretches(self) -> int:
        """Of training, from each of which there are moments."""
        return len(self.rows[0].falls)

    @property
    def longest(self) -> int:
        """Most local steps between averages that were tried."""
        return max(row.tau for row in self.rows)

    def taus(self, operator: str) -> list[int]:
        """Return the local steps that were tried with an operator, rising.

        Parameters
        ----------
        operator : str
            Its specification; "" without compression.
        """
        return sorted(row.tau for row in self.rows if row.operator == operator)

    def kept(self, operator: str, tau: int, level: float) -> Estimate | None:
        """Return progress of a step over that of a synchronous one; None outside of the numbers that were tried.

        Parameters
        ----------
        operator : str
            Its specification; "" without compression.
        tau : int
            Local steps; between two numbers that were tried, linear in them.
        level : float
            Confidence of the interval.
        """
        tried = self.taus(operator)
        if not tried or not tried[0] <= tau <= tried[-1]:
            return None
        before, after, share = _beside(tried, tau)
        right = self._tried(operator, after, level)
        if after == tau:
            return right
        left = self._tried(operator, before, level)
        value, low, high = (
            (1 - share) * float(a) + share * float(b)
            for a, b in (
                (left.value, right.value),
                (left.interval.lo, right.interval.lo),
                (left.interval.hi, right.interval.hi),
            )
        )
        return Estimate(value, Interval(low, high), level)

    def _tried(self, operator: str, tau: int, level: float) -> Estimate:
        """Return progress as it was tried; with residuals the interval also holds progress without what they owe."""
        if (operator, tau) == SYNCHRONOUS:
            return Estimate(1.0, Interval(1.0, 1.0), level)
        row = self._row(operator, tau)
        tried = self._mean(row.falls, level)
        if not row.owed:
            return tried
        left = tuple(
            tuple(fall - owed for fall, owed in zip(*stretch, strict=True))
            for stretch in zip(row.falls, row.owed, strict=True)
        )
        ends = [tried.interval, self._mean(left, level).interval]
        return Estimate(tried.value, Interval(min(each.lo for each in ends), max(each.hi for each in ends)), level)

    def _mean(self, falls: tuple[tuple[float, ...], ...], level: float) -> Estimate:
        """Return the harmonic mean of progress over the stretches: each counts by the time that it takes."""
        pairs = list(zip(falls, self._row(*SYNCHRONOUS).falls, strict=True))
        if any(sum(falls) <= 0 and not hides(falls, synchronous) for falls, synchronous in pairs):
            return Estimate(0.0, Interval(0.0, math.inf), level)
        if any(hides(*pair) for pair in pairs):
            quantiles = mean_quantiles([quantiles_of(*pair) for pair in pairs])
            low, times, high = np.interp(((1 - level) / 2, 0.5, (1 + level) / 2), SHARES, quantiles).tolist()
            return Estimate(1 / times, Interval(1 / high, 1 / low), level)
        slower, errors = np.transpose([times_of(*pair) for pair in pairs])
        times, freedom = float(slower.mean()), sum(len(falls) - 1 for falls, _ in pairs)
        spread = student_quantile(level, freedom) * float(np.linalg.norm(errors)) / len(pairs)
        low = 1 / (times + spread)
        return Estimate(1 / times, Interval(low, 1 / (times - spread) if spread < times else math.inf), level)

    def hidden(self, operator: str, tau: int) -> int:
        """Return the number of stretches in which noise hides progress, so that most of it is a prior's.

        Parameters
        ----------
        operator : str
            Its specification; "" without compression.
        tau : int
            Local steps, a number that was tried.
        """
        return 0 if (operator, tau) == SYNCHRONOUS else sum(hides(*pair) for pair in self._pairs(operator, tau))

    def _pairs(self, operator: str, tau: int) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
        return list(zip(self._row(operator, tau).falls, self._row(*SYNCHRONOUS).falls, strict=True))

    def lag(self, operator: str) -> float:
        """Return the mean number of rounds until a residual is sent, over all stretches; 0 without one.

        Parameters
        ----------
        operator : str
            Its specification.
        """
        tau = self.taus(operator)[0]
        owed = self._row(operator, tau).owed
        gained = sum(map(sum, self._row(*SYNCHRONOUS).falls)) / self.steps * tau
        return max(sum(map(sum, owed)) / gained, 0.0) if gained > 0 else 0.0

    def bits(self, operator: str, tau: int) -> float | None:
        """Return the bits per coordinate of a round's message, the movement of the local steps; None if unknown.

        Parameters
        ----------
        operator : str
            Its specification.
        tau : int
            Local steps; between two numbers that were tried, linear in them.
        """
        tried = self.taus(operator)
        if not tried or not tried[0] <= tau <= tried[-1]:
            return None
        before, after, share = _beside(tried, tau)
        rows = [self._row(operator, each).bits for each in (before, after)]
        if not all(rows):
            return None
        left, right = (float(np.mean([each for stretch in row for each in stretch])) for row in rows)
        return (1 - share) * left + share * right

    def _row(self, operator: str, tau: int) -> RoundTrial:
        return next(row for row in self.rows if (row.operator, row.tau) == (operator, tau))

    def then(self, later: RoundTrials) -> RoundTrials:
        """Return these trials followed by those of a later stretch of the same training.

        Parameters
        ----------
        later : RoundTrials
            Of the same choices, workers and steps.

        Raises
        ------
        ValueError
            For others.
        """
        of_later = {(row.operator, row.tau): row for row in later.rows}
        alike = {(row.operator, row.tau) for row in self.rows} == set(of_later)
        if not alike or (self.workers, self.steps) != (later.workers, later.steps):
            raise ValueError(
                "the trial rounds of a later pilot must be of the same choices, workers and steps; got "
                f"{len(later.rows)} choices, {later.workers} workers and {later.steps} steps after {len(self.rows)}, "
                f"{self.workers} and {self.steps}: make both pilots alike"
            )
        pairs = ((row, of_later[row.operator, row.tau]) for row in self.rows)
        rows = (
            replace(
                row, **{name: getattr(row, name) + getattr(other, name) for name in OF_TRIALS if getattr(other, name)}
            )
            for row, other in pairs
        )
        return replace(self, rows=tuple(rows))

    def repeated(self, times: int) -> RoundTrials:
        """Return the trials that would have seen the same moments so often.

        Parameters
        ----------
        times : int
            How often, >= 1.
        """

        def often(row: RoundTrial) -> RoundTrial:
            columns: dict[str, Any] = {name: tuple(each * times for each in getattr(row, name)) for name in OF_TRIALS}
            return replace(row, **columns)

        return replace(self, rows=tuple(map(often, self.rows)))

    @classmethod
    def from_dict(cls, stated: dict[str, Any]) -> RoundTrials:
        """Return the trials of plain values.

        Parameters
        ----------
        stated : dict
            Fields by name.
        """
        rows = (
            RoundTrial(row["operator"], row["tau"], *(tuple(map(tuple, row.get(name, ()))) for name in OF_TRIALS))
            for row in stated["rows"]
        )
        return cls(stated["workers"], stated["steps"], tuple(rows))


def _beside(tried: Sequence[int], tau: int) -> tuple[int, int, float]:
    """Return the tried numbers on both sides of tau, and the share of the way from the first to the second."""
    after = next(each for each in tried if each >= tau)
    before = max(each for each in tried if each <= tau)
    return before, after, 0.0 if before == after else (tau - before) / (after - before)


def with_unseen(kept: Estimate) -> Estimate:
    """Return progress whose interval holds also what trainings have done that their trials had not shown.

    Parameters
    ----------
    kept : Estimate
        As the moments tell it.
    """
    further = FURTHER * math.log(kept.value) if kept.value > 0 else 0.0
    more = NormalDist().inv_cdf((1 + kept.level) / 2) * math.hypot(UNSEEN, further)

    def moved(end: float, sign: int) -> float:
        if end <= 0 or kept.value <= 0 or math.isinf(end):
            return max(end, 0.0)
        return kept.value * math.exp(sign * math.hypot(math.log(end / kept.value), more))

    ends = moved(float(kept.interval.lo), -1), moved(float(kept.interval.hi), 1)
    return Estimate(kept.value, Interval(*ends), kept.level)
