"""Rows of a study's table: a share of trials, a mean of runs, or an exact fact, each against one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from .compare import exact_verdict, lower_verdict, student_interval, tight_verdict, upper_verdict
from .records import Comparison, Sample, Verdict

UNJUDGED = 0.05  # level of intervals that decide nothing and take no part in the budget

Side = Literal["upper", "lower", "tight"]


def share_interval(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson's two-sided interval for a probability, of independent trials."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, level / 2))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - level / 2))
    return low, high


def share_row(hits: int, trials: int, bound: float, side: Side, *, level: float, **about: Any) -> Comparison:
    """A probability, measured in independent trials.  about : the other fields of ``Comparison``."""
    interval = share_interval(hits, trials, level)
    verdict = _verdict(interval, bound, side)
    return _row(hits / trials, interval, bound, side, verdict, trials, about)


def mean_row(values: Sequence[float], bound: float, side: Side, *, level: float, **about: Any) -> Comparison:
    """A mean of independent numbers, by Student's interval."""
    sample = Sample.of(values)
    interval = student_interval(sample, level)
    return _row(sample.mean, interval, bound, side, _verdict(interval, bound, side), sample.n, about)


def exact_row(measured: float, bound: float, holds: bool, **about: Any) -> Comparison:
    """A number without chance in it."""
    return _row(measured, (measured, measured), bound, "tight", exact_verdict(holds), 1, about)


def unjudged_row(values: Sequence[float], reason: str, **about: Any) -> Comparison:
    """A mean that no bound covers, with a 95 % interval; ``reason`` says which assumption is not met."""
    sample = Sample.of(values)
    interval = student_interval(sample, UNJUDGED)
    return _row(sample.mean, interval, None, "upper", Verdict.OUT_OF_SCOPE, sample.n, {**about, "reason": reason})


def out_of_scope(row: Comparison, reason: str) -> Comparison:
    """The same row without a verdict: an assumption of its bound is not met."""
    return replace(row, verdict=Verdict.OUT_OF_SCOPE, reason=reason)


def _verdict(interval: tuple[float, float], bound: float, side: Side) -> Verdict:
    if side == "upper":
        return upper_verdict(interval, bound)
    if side == "lower":
        return lower_verdict(interval, (bound, bound))
    return tight_verdict(interval, bound)


def _row(
    measured: float,
    interval: tuple[float, float],
    bound: float | None,
    side: str,
    verdict: Verdict,
    n: int,
    about: dict[str, Any],
) -> Comparison:
    return Comparison(measured=measured, interval=interval, bound=bound, side=side, verdict=verdict, n=n, **about)
