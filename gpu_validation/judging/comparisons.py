"""Rows of a study's table: a share of trials, a mean of runs, or an exact number, each against a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from ..records.compression import Sample
from .intervals import (
    ACQUIT,
    UNJUDGED,
    UNKNOWN,
    Interval,
    Median,
    interval_below,
    mean_interval,
    share_interval,
    student_interval,
    variance_interval,
)
from .verdict import (
    MARGIN,
    Comparison,
    Verdict,
    exact_verdict,
    lower_verdict,
    open_above,
    tight_verdict,
    upper_verdict,
    wide,
)

Side = Literal["upper", "lower", "tight"]
SHARE_MARGIN = 0.02
NO_THEOREM = "no theorem covers it"
NO_RANGE = "without a declared range no number of runs bounds the mean of differences; shown with Student's 95 %"


def share_row(
    hits: int, trials: int, bound: float, side: Side, *, level: float, margin: float = SHARE_MARGIN, **about: Any
) -> Comparison:
    """Compare a probability with a bound, by independent trials.

    ``level`` is the probability of a VIOLATED if the bound is true.  ``margin`` is that of an equality, itself a share.
    ``about`` are the other fields of ``Comparison``.
    """
    accusing, acquitting = share_interval(hits, trials, 2 * level), share_interval(hits, trials, 2 * ACQUIT)
    if side == "tight":
        interval = share_interval(hits, trials, level)
    else:
        interval = (accusing[0], acquitting[1]) if side == "upper" else (acquitting[0], accusing[1])
    return interval_row(hits / trials, interval, bound, side, margin=margin, n=trials, **about)


def mean_row(
    values: Sequence[float],
    bound: float,
    side: Side,
    *,
    level: float,
    floor: float = 0.0,
    ceiling: float | None = None,
    variance: float | None = None,
    margin: float | None = None,
    **about: Any,
) -> Comparison:
    """Compare a mean of independent draws with a bound, from the range or the variance of the draws only.

    ``floor`` and ``ceiling`` are the range of a draw.  ``variance`` is an upper bound on its variance and replaces the
    range.  ``margin`` is that of an equality; None takes a tenth of the bound.  For the other arguments see
    ``share_row``.

    Raises
    ------
    ValueError
        If a value is outside its declared range.
    """
    sample, top = Sample.of(values), math.inf if ceiling is None else ceiling
    below, above = {"upper": (level, ACQUIT), "lower": (ACQUIT, level), "tight": (level / 2, level / 2)}[side]
    if variance is not None:
        interval = variance_interval(sample, variance, below=below, above=above)
    elif side == "upper":
        interval = interval_below(sample, bound, level, floor=floor, ceiling=ceiling)
    else:
        interval = mean_interval(sample, below=below, above=above, floor=floor, ceiling=top)
    width = MARGIN * abs(bound) if margin is None else margin
    return interval_row(sample.mean, interval, bound, side, margin=width, n=sample.n, **about)


def ratio_row(
    values: Sequence[float], base: Sequence[float], variances: tuple[float, float], *, level: float, **about: Any
) -> Comparison:
    """Compare a mean over another one with 1, from below, by upper bounds on the variances of their draws.

    The upper end of the ratio decides a VIOLATED: it takes the upper end of one mean and the lower end of the other.
    For the other arguments see ``share_row``.
    """
    above, below = Sample.of(values), Sample.of(base)
    low, high = variance_interval(above, variances[0], below=ACQUIT / 2, above=level / 2)
    least, most = variance_interval(below, variances[1], below=level / 2, above=ACQUIT / 2)
    interval = max(low, 0.0) / most, high / least if least > 0 else math.inf
    return interval_row(above.mean / below.mean, interval, 1.0, "lower", n=above.n, **about)


def exact_row(
    measured: float, bound: float, holds: bool, side: Side = "tight", *, interval: Interval | None = None, **about: Any
) -> Comparison:
    """Compare a number without randomness with a bound; ``interval`` has the ends of several numbers."""
    ends = (measured, measured) if interval is None else interval
    return _row(measured, ends, bound, side, exact_verdict(holds), about)


def unknown_row(reason: str, *, bound: float | None = None, side: Side = "tight", **about: Any) -> Comparison:
    """Return a row without a measured number and without a verdict."""
    return _row(math.nan, UNKNOWN, bound, side, Verdict.OUT_OF_SCOPE, {**about, "reason": reason})


def unjudged_row(values: Sequence[float], reason: str, **about: Any) -> Comparison:
    """Return a mean with a 95 % interval and no verdict; ``reason`` names the assumption that fails."""
    sample = Sample.of(values)
    interval = student_interval(sample, UNJUDGED)
    about |= {"reason": reason, "n": sample.n}
    return _row(sample.mean, interval, None, "upper", Verdict.OUT_OF_SCOPE, about)


def median_row(name: str, found: Median, reason: str, **about: Any) -> Comparison:
    """Return a median over seeds without a verdict, because no theorem covers it."""
    about |= {"operator": name, "n": found.n, "decides": False}
    about["reason"] = f"{reason}; median of {found.n} seeds, order statistics at level {found.level:.4g}"
    return _row(found.value, found.interval, None, "lower", Verdict.OUT_OF_SCOPE, about)


def goal_row(
    found: Median, goal: float | None = None, side: Side = "upper", *, rest: str = "", **about: Any
) -> Comparison:
    """Return a number that no theorem covers, beside the goal that was set for it.

    ``rest`` describes an interval that is not of order statistics.
    """
    words = ""
    if goal is not None:
        met = found.value <= goal if side == "upper" else found.value >= goal
        words = f"goal: at {'most' if side == 'upper' else 'least'} {goal:g}, {'met' if met else 'missed'}; "
    interval = f"; order statistics at level {found.level:.4g}" if found.level else rest
    about |= {"reason": f"{words}{NO_THEOREM}{interval}", "decides": False, "n": found.n}
    return _row(found.value, found.interval, None, side, Verdict.OUT_OF_SCOPE, about)


def out_of_scope(row: Comparison, reason: str) -> Comparison:
    """Return the row without a verdict, because an assumption of its bound fails."""
    return replace(row, verdict=Verdict.OUT_OF_SCOPE, reason=reason)


def interval_row(
    measured: float,
    interval: Interval,
    bound: float,
    side: Side,
    *,
    margin: float = 0.0,
    rounding: float = 0.0,
    **about: Any,
) -> Comparison:
    """Compare the interval of a number with a bound.

    ``margin`` is that of an equality, and ``rounding`` the error that an upper bound allows.
    """
    if side == "upper":
        verdict = upper_verdict(interval, bound, rounding)
        if unbounded := open_above(interval, verdict):
            about = {"reason": unbounded, **about}
    elif side == "lower":
        verdict = lower_verdict(interval, (bound, bound))
    else:
        verdict = tight_verdict(interval, bound, margin)
        if verdict is Verdict.INCONCLUSIVE:
            about = {"reason": wide(margin), **about}
    return _row(measured, interval, bound, side, verdict, about)


def _row(
    measured: float, interval: Interval, bound: float | None, side: str, verdict: Verdict, about: dict[str, Any]
) -> Comparison:
    return Comparison(measured=measured, interval=interval, bound=bound, side=side, verdict=verdict, **about)
