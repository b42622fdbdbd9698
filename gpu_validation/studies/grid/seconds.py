"""Rows on seconds: an iteration against the runtime model, and what local steps gain.  None decides the exit status."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...records.sample import Sample
from ...verdicts.intervals import Interval, student_interval
from ...verdicts.judge import UNJUDGED
from ...verdicts.verdict import Comparison, Verdict
from .records import Training
from .theory import predicted_seconds

TOLERANCE = 0.10  # of the predicted seconds per iteration
GAIN_TOLERANCE = 0.20  # of the predicted gain, which divides two of them
QUIET = 1.1  # times the wanted step that nine steps in ten keep on a quiet machine
FAR = 1.5  # times the predicted seconds, or one over it: no disturbance of a quiet machine reaches so far


def seconds_rows(record: Training, runs: Sequence[Training], where: dict[str, Any]) -> Iterator[Comparison]:
    """Return the iteration, and for tau > 1 the gain over the smallest tau of the same operator."""
    predicted = predicted_seconds(record.timing, record.tau, record.processes)
    sample = _per_step(record)
    interval = student_interval(sample, UNJUDGED)
    verdict, reason = _judged(interval, predicted, TOLERANCE, quiet=quiet(record))
    yield Comparison(
        quantity="seconds per iteration",
        measured=sample.mean,
        interval=interval,
        bound=predicted,
        side="tight",
        verdict=verdict,
        reason=reason,
        unit="s",
        theorem="E max of mean Y + D / tau",
        n=sample.n,
        decides=False,
        slack=FAR if quiet(record) else math.inf,
        **where,
    )
    same_operator = [r for r in runs if (r.workload, r.operator) == (record.workload, record.operator)]
    slow = min(same_operator, key=lambda r: r.tau)
    if slow.tau < record.tau:
        yield _gain_row(record, slow, predicted, where)


def quiet(record: Training) -> bool:
    """Return whether nine local steps in ten took no longer than they were padded to, up to a tenth."""
    nominal_s = record.timing.wanted_step_s
    return nominal_s > 0 and float(np.quantile(record.timing.step_s, 0.9)) <= QUIET * nominal_s


def _per_step(record: Training) -> Sample:
    return Sample.of([s / record.tau for s in record.timing.round_s])


def _gain_row(record: Training, slow: Training, predicted: float, where: dict[str, Any]) -> Comparison:
    before, after = _per_step(slow), _per_step(record)
    gain = before.mean / after.mean
    value = predicted_seconds(slow.timing, slow.tau, slow.processes) / predicted
    half = _relative_half(before) + _relative_half(after)
    interval = gain * max(0.0, 1 - half), gain * (1 + half)
    both_quiet = quiet(record) and quiet(slow)
    verdict, reason = _judged(interval, value, GAIN_TOLERANCE, quiet=both_quiet)
    return Comparison(
        quantity=f"times faster than tau = {slow.tau}",
        measured=gain,
        interval=interval,
        bound=value,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem="(Y + D) / (Y + D / tau)",
        n=after.n,
        decides=False,
        slack=FAR if both_quiet else math.inf,
        **where,
    )


def _relative_half(sample: Sample) -> float:
    low, high = student_interval(sample, UNJUDGED)
    return (high - low) / 2 / sample.mean if math.isfinite(high) else math.inf


def _judged(interval: Interval, predicted: float, tolerance: float, *, quiet: bool) -> tuple[Verdict, str]:
    """Return HOLDS within the tolerance; VIOLATED on a quiet machine that is far from the model, else INCONCLUSIVE."""
    low, high = interval
    if predicted * (1 - tolerance) <= low and high <= predicted * (1 + tolerance):
        return Verdict.HOLDS, ""
    if quiet and (high < predicted / FAR or low > predicted * FAR):
        return Verdict.VIOLATED, "far from the model on a quiet machine"
    if high - low > 2 * tolerance * predicted:
        return Verdict.INCONCLUSIVE, "the rounds scatter too much to tell"
    if low > predicted * (1 + tolerance) or high < predicted * (1 - tolerance):
        words = f"more than {100 * tolerance:g} % from the model; the noise of a shared machine has no bound"
        return Verdict.INCONCLUSIVE, words
    return Verdict.INCONCLUSIVE, f"only partly within {100 * tolerance:g} % of the model"
