"""The verdict that follows from an interval and a bound, one function a side."""

from __future__ import annotations

from ..records import Verdict
from .intervals import Interval

MARGIN = 0.10  # of the bound: an interval that reaches no further shows an equality


def upper_verdict(interval: Interval, bound: float, slack: float = 0.0) -> Verdict:
    """Does the quantity stay below the bound?"""
    if interval[0] > bound + slack:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[1] <= bound + slack else Verdict.INCONCLUSIVE


def lower_verdict(interval: Interval, bound_at_ends: Interval) -> Verdict:
    """Does the quantity stay above a bound that itself lies in an interval?"""
    if interval[1] < bound_at_ends[0]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[0] >= bound_at_ends[1] else Verdict.INCONCLUSIVE


def tight_verdict(interval: Interval, bound: float, margin: float) -> Verdict:
    """Is the quantity equal to the bound, up to ``margin``?  A wider interval shows neither."""
    if not interval[0] <= bound <= interval[1]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if bound - margin <= interval[0] and interval[1] <= bound + margin else Verdict.INCONCLUSIVE


def wide(margin: float) -> str:
    """Say why an equality is INCONCLUSIVE."""
    return f"not contradicted, not shown: the interval reaches further than {margin:.3g} from the value"


def exact_verdict(holds: bool) -> Verdict:
    """Exact comparisons know only two answers."""
    return Verdict.HOLDS if holds else Verdict.VIOLATED
