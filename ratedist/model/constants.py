"""The constants of a problem: known exactly, estimated from samples, or assumed because nothing was said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from bounds import Interval
from bounds.estimate import Estimate, assumed

from ..numbers import Number, Numbers, number, read
from ..records import Statement, number_text

Uncertain = Number | Estimate
"""One constant, known or estimated; a text such as "1.2:0.8:2" states an estimate."""
Uncertains = Numbers | Estimate
"""One constant, likewise, or several known ones."""

ASSUMED = 1.0  # what L, sigma2 and gap are taken to be where nothing was said
LEFT_OUT = "momentum, AdamW, clipping, schedules: all numbers are for plain SGD"
RESCALING = "eta ~ sqrt(m) for m workers, (tau - 1)^(-1/3) for long rounds (Theorem 1, wang2018)"
TEXT = "value:low:high or value:low:high:level"


def read_constants(
    given: Mapping[str, Any],
) -> tuple[dict[str, str | np.ndarray], dict[str, Estimate]]:
    """Return constants as exact texts or arrays, and those of them that are uncertain.

    None stands for an assumed value of 1, taken as known up to a factor of 10.  An ``Estimate``, or a text such as
    "1.2:0.8:2" (value, low, high and, if wished, the level .95), is an estimated one.  The texts hold their values.
    """
    uncertain = {name: estimate for name, value in given.items() if (estimate := uncertain_of(name, value)) is not None}
    values = {name: read(name, repr(uncertain[name].value) if name in uncertain else given[name]) for name in given}
    return values, uncertain


def uncertain_of(name: str, value: Any) -> Estimate | None:
    """Return the estimate that a constant is given as; None if it is known."""
    if value is None:
        return assumed(ASSUMED)
    if isinstance(value, Estimate):
        number(name, value.value)
        return value
    if isinstance(value, str) and ":" in value:
        return _parsed(name, value)
    return None


def _parsed(name: str, text: str) -> Estimate:
    parts = text.split(":")
    if len(parts) not in (3, 4):
        raise ValueError(f"an estimate of {name} must read {TEXT}; got {text[:64]}: write for example 1.2:0.8:2")
    middle, low, high = (float(Fraction(number(name, part))) for part in parts[:3])
    try:
        level = float(parts[3]) if len(parts) == 4 else 0.95
    except ValueError:
        level = math.nan
    if not (low <= middle <= high and 0 < level < 1):
        raise ValueError(
            f"an estimate of {name} must satisfy low <= value <= high and 0 < level < 1; got {text[:64]}: "
            "write for example 1.2:0.8:2"
        )
    return Estimate(middle, Interval(low, high), level)


def between(interval: Interval, uncertain: Mapping[str, Estimate]) -> str:
    """Return the interval of a result and what it is over, as a clause."""
    low, high = (number_text(float(end)) for end in (interval.lo, interval.hi))
    ends = f"{low} to {high}".replace("inf", "infinity (no theorem speaks there)")
    return f"From {ends} over {', '.join(uncertain)}, which are not known"


def in_words(uncertain: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return one line for the assumptions of a result, for each uncertain constant."""
    return tuple(_sentence(name, estimate) for name, estimate in uncertain.items())


def _sentence(name: str, found: Estimate) -> str:
    ends = f"{number_text(float(found.interval.lo))} to {number_text(float(found.interval.hi))}"
    if found.level == 0:
        return f"{name} = {found.value:g} is assumed, nothing was said; the interval is over {name} from {ends}"
    bias = f"; {found.bias}" if found.bias else ""
    return f"{name} = {found.value:g} is estimated, {ends} at level {found.level:g}{bias}"


def uncertain_statement(statement: Statement, uncertain: dict[str, Estimate]) -> Statement:
    """Return the same as an estimate if constants are uncertain: no theorem speaks for them."""
    if not uncertain:
        return statement
    status = f"{statement.status} for true constants, not for assumed or estimated ones"
    return replace(
        statement,
        side="estimate",
        status=status,
        assumptions=(*statement.assumptions, *in_words(uncertain)),
        assumed=(*not_said(uncertain), *statement.assumed),
    )


def not_said(uncertain: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return the constants that the caller did not state, with the value and the range that were taken."""
    return tuple(
        f"{name} = {each.value:g} ({each.interval.lo:g} to {each.interval.hi:g})"
        for name, each in uncertain.items()
        if each.level == 0
    )
