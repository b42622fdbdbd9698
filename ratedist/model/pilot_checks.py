"""A pilot from outside, such as one that a page was given: read, and refused in words where it cannot be one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .pilot import Pilot

MOST_OPERATORS = 32
MOST_MOMENTS = 4096
MOST_RANKS = 1024
MOST_TAUS = 32
MOST_TAU = 4096
MOST_D = 10**12
LARGEST, SMALLEST = 1e30, 1e-30  # products of squares of what is not 0 stay finite
MOST_CHARACTERS = 64
OPTIONAL = ("falls", "bends")  # without them a prediction is refused in its own words


def pilot_of_record(stated: Any) -> Pilot:
    """Return the pilot that a record states, whose numbers fit together.

    Parameters
    ----------
    stated : object
        Plain values, as ``Pilot.to_dict`` returns them.

    Raises
    ------
    ValueError
        For another version, for what is no pilot, and for numbers that no pilot measures.
    """
    pilot = Pilot.from_dict(stated)
    whole = {"d": (pilot.d, MOST_D), "ranks": (pilot.ranks, MOST_RANKS), "threads": (pilot.threads, MOST_D)}
    for name, (value, most) in whole.items():
        _require(_is_whole(value) and 1 <= value <= most, name, f"an integer from 1 to {most}", value)
    _require(isinstance(pilot.device, str), "device", "a text", pilot.device)
    _require(_is_number(pilot.memory_bytes) and pilot.memory_bytes >= 0, "memory_bytes", "bytes", pilot.memory_bytes)
    _require(len(pilot.step_s) == pilot.ranks, "step_s", f"a row for each of {pilot.ranks} ranks", len(pilot.step_s))
    for row in pilot.step_s:
        _check_numbers("step_s", row, least=0.0, count=len(pilot.step_s[0]))
        _require(sum(row) > 0, "step_s", "seconds above 0", list(row))
    if pilot.backward_s:
        _require(len(pilot.backward_s) == pilot.ranks, "backward_s", f"{pilot.ranks} rows", len(pilot.backward_s))
    for row in pilot.backward_s:
        _check_numbers("backward_s", row, least=0.0, count=len(pilot.step_s[0]))
    once = pilot.sums_at_once
    _require(_is_whole(once) and 1 <= once <= MOST_RANKS, "sums_at_once", f"an integer from 1 to {MOST_RANKS}", once)
    for name in ("passes", "steps"):
        value = getattr(pilot, name)
        _require(_is_whole(value) and 0 <= value <= MOST_D, name, f"an integer from 0 to {MOST_D}", value)
    _check_path(pilot)
    _check_operators(pilot)
    for timings in pilot.links:
        _require(isinstance(timings.level, str), "links", "levels by name", timings.level)
        _require(_is_whole(timings.ranks) and timings.ranks >= 2, "links", "two ranks or more", timings.ranks)
        _check_numbers("links", timings.payload_bytes, least=0.0)
        _check_numbers("links", timings.seconds, least=0.0, count=len(timings.payload_bytes))
    return pilot


def _check_path(pilot: Pilot) -> None:
    taus, moments = pilot.taus, len(pilot.survival)
    _require(
        1 <= len(taus) <= MOST_TAUS
        and all(_is_whole(tau) and 1 <= tau <= MOST_TAU for tau in taus)
        and all(before < after for before, after in pairwise(taus)),
        "taus",
        f"up to {MOST_TAUS} rising integers from 1 to {MOST_TAU}",
        list(taus),
    )
    _require(2 <= moments <= MOST_MOMENTS, "survival", f"2 to {MOST_MOMENTS} moments", moments)
    for name in ("survival", "secants", "falls", "bends"):
        rows = getattr(pilot, name)
        if name in OPTIONAL and not rows:
            continue
        _require(len(rows) == moments, name, f"a row for each of {moments} moments", len(rows))
        for row in rows:
            _check_numbers(name, row, count=len(taus))
    expected = pilot.ranks * moments
    for name in ("small_norms2", "large_norms2"):
        _check_numbers(name, getattr(pilot, name), least=0.0, count=expected)
    _require(min(pilot.small_norms2) > 0, "small_norms2", "squares above 0", min(pilot.small_norms2))
    _check_numbers("losses", pilot.losses)


def _check_operators(pilot: Pilot) -> None:
    trials = pilot.operators
    _require(len(trials) <= MOST_OPERATORS, "operators", f"at most {MOST_OPERATORS} trials", len(trials))
    for trial in trials:
        _require(isinstance(trial.operator, str), "operators", "specifications", trial.operator)
        _require(isinstance(trial.codec.source, str), "codec", "a source in words", trial.codec.source)
        _check_numbers("bits", trial.bits, least=0.0)
        count = len(trial.bits)
        _require(2 <= count <= MOST_MOMENTS, "bits", f"2 to {MOST_MOMENTS} numbers for each operator", count)
        _check_numbers("nmse", trial.nmse, least=0.0, count=count)
        _check_numbers("residuals", trial.residuals, least=0.0)


def _check_numbers(name: str, values: Sequence[Any], *, least: float = -LARGEST, count: int | None = None) -> None:
    """Refuse what is no list of finite numbers of this length."""
    _require(isinstance(values, tuple), name, "a list of numbers", values)
    if count is not None:
        _require(len(values) == count, name, f"{count} numbers in a row", len(values))
    rule = f"0 or numbers from {SMALLEST:g} to {LARGEST:g}" + (", or below 0 as far" if least else "")
    for value in values:
        fits = _is_number(value) and value >= least and (value == 0 or SMALLEST <= abs(value) <= LARGEST)
        _require(fits, name, rule, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(holds: bool, name: str, rule: str, value: Any) -> None:
    if not holds:
        got = repr(value)[:MOST_CHARACTERS]
        raise ValueError(f"{name} of a pilot must be {rule}; got {got}: give the file as it was written")
