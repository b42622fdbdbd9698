"""Progress as trial rounds have shown it: as many steps from the same point, by a choice and by synchronous training.

A round that is tried sees what no single gradient tells: different data, kinks, momentum, adaptive rates, residuals.
``docs/concepts/prediction.md`` says what its number is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from bounds import Interval
from bounds.estimate import Estimate, student_quantile

from .hidden_progress import SHARES, hides, mean_quantiles, quantiles_of, times_of

SYNCHRONOUS = ("", 1)
UNSEEN = 0.05  # relative deviation of trainings from trials, beyond the moments': the design half of study `prediction`


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
        How much of it they owe, likewise; empty without residuals.
    """

    operator: str
    tau: int
    falls: tuple[tuple[float, ...], ...]
    owed: tuple[tuple[float, ...], ...] = ()


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
        after = next(each for each in tried if each >= tau)
        right = self._tried(operator, after, level)
        if after == tau:
            return right
        before = max(each for each in tried if each < tau)
        left, share = self._tried(operator, before, level), (tau - before) / (after - before)
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
        """Return in how many stretches noise hides progress, so that most of it is a prior's.

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
        """Return after how many rounds what a residual owes arrives, over all stretches together; 0 without one.

        Parameters
        ----------
        operator : str
            Its specification.
        """
        tau = self.taus(operator)[0]
        owed = self._row(operator, tau).owed
        gained = sum(map(sum, self._row(*SYNCHRONOUS).falls)) / self.steps * tau
        return max(sum(map(sum, owed)) / gained, 0.0) if gained > 0 else 0.0

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
        rows = (replace(row, falls=row.falls + other.falls, owed=row.owed + other.owed) for row, other in pairs)
        return replace(self, rows=tuple(rows))

    def repeated(self, times: int) -> RoundTrials:
        """Return the trials that would have seen the same moments so often.

        Parameters
        ----------
        times : int
            How often, >= 1.
        """
        rows = (
            replace(
                row,
                falls=tuple(stretch * times for stretch in row.falls),
                owed=tuple(stretch * times for stretch in row.owed),
            )
            for row in self.rows
        )
        return replace(self, rows=tuple(rows))

    @classmethod
    def from_dict(cls, stated: dict[str, Any]) -> RoundTrials:
        """Return the trials of plain values.

        Parameters
        ----------
        stated : dict
            Fields by name.
        """
        rows = (
            RoundTrial(row["operator"], row["tau"], *(tuple(map(tuple, row[name])) for name in ("falls", "owed")))
            for row in stated["rows"]
        )
        return cls(stated["workers"], stated["steps"], tuple(rows))


def with_unseen(kept: Estimate) -> Estimate:
    """Return progress whose interval holds also what trainings have done that their trials had not shown.

    Parameters
    ----------
    kept : Estimate
        As the moments tell it.
    """
    more = NormalDist().inv_cdf((1 + kept.level) / 2) * UNSEEN

    def moved(end: float, sign: int) -> float:
        if end <= 0 or kept.value <= 0 or math.isinf(end):
            return max(end, 0.0)
        return kept.value * math.exp(sign * math.hypot(math.log(end / kept.value), more))

    ends = moved(float(kept.interval.lo), -1), moved(float(kept.interval.hi), 1)
    return Estimate(kept.value, Interval(*ends), kept.level)
