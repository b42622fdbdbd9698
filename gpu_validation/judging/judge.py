"""Common level of all rows of a run, split over the rows that rest on a sample."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from bounds import AssumptionViolated, Bound, Status

from ..records.compression import Sample
from .comparisons import interval_row, unknown_row
from .intervals import ACQUIT, UNJUDGED, Interval, interval_below, student_interval, variance_interval
from .verdict import Comparison, Verdict

NOT_MEASURED = "not measured"  # beginning of the reason of a row without a measurement


class Judge:
    """Makes rows at one level and counts those that rest on a sample."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.samples = 0

    def below(self, sample: Sample, bound: float, ceiling: float | None = None) -> Interval:
        """Return the interval for an upper bound on the mean of draws >= 0."""
        self.samples += 1
        largest = ceiling if ceiling is None or sample.high <= ceiling else None  # ignore an exceeded worst case
        return interval_below(sample, bound, self.level, floor=0.0, ceiling=largest)

    def shown(self, sample: Sample) -> Interval:
        """Return a 95 % interval without a verdict."""
        return student_interval(sample, UNJUDGED)

    def upper(self, sample: Sample, bound: float, variance: float | None, **about: Any) -> Comparison:
        """Compare the mean of draws >= 0 with an upper bound; ``variance`` is that of one draw, None if unknown."""
        if variance is None:
            interval = self.below(sample, bound)
        else:
            self.samples += 1
            interval = variance_interval(sample, variance, below=self.level, above=ACQUIT)
        return interval_row(sample.mean, interval, bound, "upper", n=sample.n, **about)

    def tight(self, sample: Sample, value: float, variance: float, margin: float, **about: Any) -> Comparison:
        """Compare the mean of draws of known variance with a value, with a relative margin."""
        self.samples += 1
        interval = variance_interval(sample, variance, below=self.level / 2, above=self.level / 2)
        return interval_row(sample.mean, interval, value, "tight", margin=margin * abs(value), n=sample.n, **about)


UNREADABLE = (AssumptionViolated, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a damaged record raises."""


def rows_of(measure: Callable[[], Iterable[Comparison]], quantity: str, **where: Any) -> list[Comparison]:
    """Return the rows that ``measure`` makes; if the record does not allow it, an INCONCLUSIVE row of ``quantity``."""
    rows: list[Comparison] = []
    try:
        with warnings.catch_warnings(), np.errstate(invalid="raise"):
            warnings.simplefilter("ignore", RuntimeWarning)
            rows += map(_of_numbers, measure())
    except UNREADABLE as error:
        rows.append(unmeasured(quantity, error, **where))
    return rows


def unmeasured(quantity: str, error: Exception, **where: Any) -> Comparison:
    """Return the INCONCLUSIVE row of a quantity that a record does not allow to measure."""
    missing = f"no field {error}" if isinstance(error, KeyError) else str(error)
    row = unknown_row(f"{NOT_MEASURED}: {missing}", side="upper", n=0, quantity=quantity, unmeasured=True, **where)
    return replace(row, verdict=Verdict.INCONCLUSIVE)


def _of_numbers(row: Comparison) -> Comparison:
    """Return the row, INCONCLUSIVE if its bound is nan, or if it HOLDS without a number."""
    if row.bound is not None and math.isnan(row.bound) and row.verdict is not Verdict.OUT_OF_SCOPE:
        return _without_number(replace(row, bound=None), "the bound is no number")
    if row.verdict is Verdict.HOLDS and any(map(math.isnan, (row.measured, *row.interval))):
        return _without_number(row, "the record has no number")
    return row


def _without_number(row: Comparison, missing: str) -> Comparison:
    return replace(row, verdict=Verdict.INCONCLUSIVE, reason=f"{NOT_MEASURED}: {missing}", unmeasured=True)


def gated(bound: Bound, row: Comparison) -> Comparison:
    """Return the row, OUT_OF_SCOPE if its bound is only recalled."""
    if bound.status is not Status.RECALLED:
        return row
    values = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return Comparison(**{**values, "verdict": Verdict.OUT_OF_SCOPE, "reason": f"{bound.name} is recalled, not checked"})
