"""One level for all rows of a run: the intervals that judge, and how many rest on a sample."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from bounds import AssumptionViolated, Bound, Status

from ..records.sample import Sample
from .intervals import ACQUIT, Interval, interval_below, student_interval, variance_interval
from .verdict import Comparison, Verdict, open_above, tight_verdict, upper_verdict, wide

UNJUDGED = 0.05  # level of intervals that decide nothing and take no part in the budget


class Judge:
    """Builds rows at one level and counts those that rest on a sample."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.samples = 0

    def below(self, sample: Sample, bound: float, ceiling: float | None = None) -> Interval:
        """Return the interval that judges an upper bound on the mean of draws >= 0."""
        self.samples += 1
        largest = ceiling if ceiling is None or sample.high <= ceiling else None  # a broken worst case is none
        return interval_below(sample, bound, self.level, floor=0.0, ceiling=largest)

    def shown(self, sample: Sample) -> Interval:
        """Return a 95 % interval that decides nothing."""
        return student_interval(sample, UNJUDGED)

    def upper(self, sample: Sample, bound: float, variance: float | None, **about: Any) -> Comparison:
        """Return a mean of draws >= 0 below a bound.

        Parameters
        ----------
        variance : float or None
            Of one draw, where it is known.
        """
        if variance is None:
            interval = self.below(sample, bound)
        else:
            self.samples += 1
            interval = variance_interval(sample, variance, below=self.level, above=ACQUIT)
        verdict = upper_verdict(interval, bound)
        return Comparison(
            measured=sample.mean,
            interval=interval,
            bound=bound,
            side="upper",
            verdict=verdict,
            reason=open_above(interval, verdict),
            n=sample.n,
            **about,
        )

    def tight(self, sample: Sample, value: float, variance: float, margin: float, **about: Any) -> Comparison:
        """Return a mean of draws of known variance equal to a value, up to a share of it."""
        self.samples += 1
        interval = variance_interval(sample, variance, below=self.level / 2, above=self.level / 2)
        verdict = tight_verdict(interval, value, margin * abs(value))
        reason = wide(margin * abs(value)) if verdict is Verdict.INCONCLUSIVE else ""
        return Comparison(
            measured=sample.mean,
            interval=interval,
            bound=value,
            side="tight",
            verdict=verdict,
            reason=reason,
            n=sample.n,
            **about,
        )


def rows_of(measure: Callable[[], Iterable[Comparison]], quantity: str, **where: Any) -> list[Comparison]:
    """Return the rows of a part of a record, with an INCONCLUSIVE one from where the record does not allow them.

    Parameters
    ----------
    measure : callable
        Makes the rows.
    quantity : str
        What the row is about that stands in their place.
    **where
        The other fields of that row.
    """
    rows: list[Comparison] = []
    try:
        with warnings.catch_warnings(), np.errstate(invalid="raise"):
            warnings.simplefilter("ignore", RuntimeWarning)
            rows += map(_of_numbers, measure())
    except (AssumptionViolated, ArithmeticError, LookupError, TypeError, ValueError) as error:
        rows.append(unmeasured(quantity, error, **where))
    return rows


def unmeasured(quantity: str, error: Exception, **where: Any) -> Comparison:
    """Return the row of a quantity that a record does not allow to measure.

    Parameters
    ----------
    quantity : str
        What would have been measured.
    error : Exception
        What the attempt raised.
    **where
        The other fields of the row.
    """
    missing = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return Comparison(
        quantity=quantity,
        measured=math.nan,
        interval=(-math.inf, math.inf),
        bound=None,
        side="upper",
        verdict=Verdict.INCONCLUSIVE,
        reason=f"not measured: {missing}",
        n=0,
        **where,
    )


def _of_numbers(row: Comparison) -> Comparison:
    """Return the row, INCONCLUSIVE if it compares something with a bound that is no number, or HOLDS without one."""
    if row.bound is not None and math.isnan(row.bound) and row.verdict is not Verdict.OUT_OF_SCOPE:
        return replace(row, bound=None, verdict=Verdict.INCONCLUSIVE, reason="not measured: the bound is no number")
    if row.verdict is Verdict.HOLDS and any(map(math.isnan, (row.measured, *row.interval))):
        return replace(row, verdict=Verdict.INCONCLUSIVE, reason="not measured: the record has no number")
    return row


def gated(bound: Bound, row: Comparison) -> Comparison:
    """Return a recalled bound gives no verdict."""
    if bound.status is not Status.RECALLED:
        return row
    values = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return Comparison(**{**values, "verdict": Verdict.OUT_OF_SCOPE, "reason": f"{bound.name} is recalled, not checked"})
