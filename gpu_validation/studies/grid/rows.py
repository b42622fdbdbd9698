"""Measured numbers against bounds: a pure function from records to verdicts.

One false-alarm budget covers a whole run: it is split evenly over the comparisons that rest on samples, and bounds
the chance that one of them accuses a true claim, whatever the law of what is sampled.  An end of an interval that
acquits misses with ACQUIT.  Exact comparisons allow only ROUNDING.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from bounds import AssumptionViolated

from ...judging.comparisons import exact_row, unknown_row
from ...judging.compression import CompressionJudge
from ...judging.envelope import in_streams
from ...judging.intervals import UNJUDGED, Interval, student_interval
from ...judging.judge import Judge, gated, rows_of
from ...judging.verdict import Comparison, Verdict
from ...records.compression import Sample
from .records import Probe, Training
from .theory import (
    AT_MEAN,
    LOSS,
    Law,
    combined_variance,
    covered,
    exact_laws,
    left_over,
    paired_laws,
    predicted_seconds,
    theorem_for,
)


def compare(records: Iterable[Probe | Training], *, false_alarm: float) -> list[Comparison]:
    """Return every comparison that the records allow, in their order.

    Parameters
    ----------
    false_alarm : float
        Chance, over the whole list, that a true claim is VIOLATED by bad luck.
    """
    records = list(records)
    counting = _Rows(level=0.5)
    counting.rows(records)
    return _Rows(level=false_alarm / max(1, counting.samples)).rows(records)


class _Rows(CompressionJudge):
    """The rows of all records."""

    def rows(self, records: list[Probe | Training]) -> list[Comparison]:
        comparisons: list[Comparison] = []
        runs = [record for record in records if isinstance(record, Training)]
        for record in records:
            where: dict[str, Any] = {"operator": record.operator}
            if isinstance(record, Training):
                where |= {"workload": record.workload, "tau": record.tau}
            else:
                where |= {"workload": record.compression.source}
            comparisons += self.compression(record.compression, where)
            if isinstance(record, Training):
                comparisons += rows_of(partial(self.traffic, record, where), "bytes", **where)
                seconds = rows_of(partial(seconds_rows, record, runs, where), "seconds per iteration", **where)
                comparisons += [*seconds, *loss_rows(self, record, runs, where)]
        return comparisons

    # -- bytes ----------------------------------------------------------------------------------
    def traffic(self, record: Training, where: dict[str, Any]) -> Iterable[Comparison]:
        t = record.traffic
        yield _codec_bits(record, where)
        payload, predicted = t.payload_bytes, t.predicted_payload_bytes
        theorem = "all-gather of messages and 8-byte headers"
        about: dict[str, Any] = {**where, "unit": "byte", "theorem": theorem, "quantity": "payload bytes, whole cell"}
        yield exact_row(payload, predicted, payload == predicted, structural=True, **about)
        quantity = "payload within the bytes of TCP streams"
        yield in_streams(payload, t.stream_bytes, t.messages, quantity=quantity, **where)
        about |= {"theorem": t.interface_method, "quantity": "interface bytes, whole cell"}
        if t.interface_bytes is None:
            reason = "no interface counter carries this backend's traffic here"
            yield unknown_row(reason, bound=payload, side="lower", **about)
        else:
            yield exact_row(t.interface_bytes, payload, t.interface_bytes >= payload, "lower", **about)


def _codec_bits(record: Training, where: dict[str, Any]) -> Comparison:
    """Compare the bits of all ranks together with the number of messages times their mean length."""
    real_seeds = len(record.seeds) - record.virtual
    expected = real_seeds * (record.steps // record.tau) * record.processes * record.compression.bits.mean
    bits = record.traffic.codec_bits
    theorem, equal = "messages of all ranks times their mean length", abs(bits - expected) <= 0.5 + 1e-9 * expected
    about = {**where, "quantity": "codec bits, whole cell", "theorem": theorem, "unit": "bit", "structural": True}
    return exact_row(bits, expected, equal, **about)


DETERMINED = 1e-5  # relative: what is left of messages in binary32 where nothing is random
LOSS_MARGIN = 0.10  # of the uncompressed run's loss, by which a run that distorts little may end above it
ACCURACY_MARGIN = 0.05  # of accuracy that it may lose
DIVERGED = 1.5  # times the uncompressed loss after one round: no other run may end above it
LITTLE = 0.1  # a share of the squared norm that a biased operator may lose and still belong to those
TWIN = "real processes against virtual workers: largest difference"
REPEATED = "runs that equal another seed's, bit for bit"
BOTH = "squared gradient norm and what the theorem leaves of it at the workers, average over steps"


def loss_rows(judge: Judge, record: Training, runs: Sequence[Training], where: dict[str, Any]) -> Iterator[Comparison]:
    """Return all of one cell.

    Parameters
    ----------
    runs : sequence of Training
        All cells, among them those that it is held against.
    """
    yield from rows_of(lambda: [_theorem_row(judge, record, where)], AT_MEAN, **where)
    yield from rows_of(lambda: (_law_row(judge, law, where) for law in exact_laws(record)), "exact laws", **where)
    if len(record.seeds) > 1:
        yield from rows_of(lambda: [_repeated_row(record, where)], REPEATED, **where)
    if record.apart is not None:
        yield from rows_of(lambda: [_twin_row(record, where)], TWIN, **where)
    cells = [run for run in runs if (run.workload, run.problem) == (record.workload, record.problem)]
    yield from rows_of(lambda: _paired_rows(judge, record, cells, where), "paired differences", **where)
    yield from rows_of(lambda: _lossless_rows(record, cells, where), LOSS, **where)


def _paired_rows(
    judge: Judge, record: Training, cells: Sequence[Training], where: dict[str, Any]
) -> Iterator[Comparison]:
    fewer = min((r for r in cells if r.operator == record.operator), key=lambda r: r.tau)
    if fewer.tau < record.tau:
        for law in paired_laws(record, fewer):
            yield _law_row(judge, law, where)


def _lossless_rows(record: Training, cells: Sequence[Training], where: dict[str, Any]) -> Iterator[Comparison]:
    lossless = [r for r in cells if r.compression.declared.constant == 0]
    if lossless:
        yield from _beside(record, min(lossless, key=lambda r: r.tau), where)


def _theorem_row(judge: Judge, record: Training, where: dict[str, Any]) -> Comparison:
    bound, extra = theorem_for(record)
    sample = Sample.of(record.gradient_norm2)
    common: dict[str, Any] = {**where, "quantity": AT_MEAN}
    shown: dict[str, Any] = {"side": "upper", "verdict": Verdict.OUT_OF_SCOPE, "interval": judge.shown(sample)}
    shown |= {"measured": sample.mean, "n": sample.n}
    if bound is None:
        reason = f"the theorem needs an unbiased operator; this one is {record.compression.declared.kind}"
        return Comparison(bound=None, reason=reason, **common, **shown)
    common["theorem"] = bound.name
    arguments = {name: record.parameters[name] for name in ("L", "sigma2", "gap", "eta")}
    arguments |= {"tau": record.tau, "m": record.processes, "K": record.steps, **extra}
    try:
        value = bound(**arguments)
    except AssumptionViolated as error:
        return Comparison(bound=None, reason=str(error), **common, **shown)
    if not record.exact_constants and "noise_growth" not in extra:  # that theorem is about a growing variance
        return Comparison(bound=value, reason=record.inexact_reason, **common, **shown)
    weight = 0.0
    if record.local_gradient_norm2:
        weight = left_over(bound, **arguments)
        sample = Sample.of(np.add(record.gradient_norm2, weight * np.asarray(record.local_gradient_norm2)))
        common["quantity"] = BOTH
    variance = combined_variance(record, weight)
    return gated(bound, judge.upper(sample, value, variance, **common))


def _law_row(judge: Judge, law: Law, where: dict[str, Any]) -> Comparison:
    about = {**where, "quantity": law.quantity, "theorem": law.theorem}
    sample = Sample.of(law.values)
    if law.variance:
        return judge.tight(sample, law.mean, law.variance, law.margin, **about)
    deviation = max(abs(sample.low - law.mean), abs(sample.high - law.mean))
    ends, equal = (sample.low, sample.high), deviation <= DETERMINED * abs(law.mean)
    return exact_row(sample.mean, law.mean, equal, interval=ends, n=sample.n, **about)


def _repeated_row(record: Training, where: dict[str, Any]) -> Comparison:
    """Count the runs that copy another seed's; diverged runs may be equal."""
    runs = [run for run in zip(record.gradient_norm2, record.final_loss, strict=True) if np.isfinite(run).all()]
    repeated = len(runs) - len(set(runs)) + len(record.seeds) - len(set(record.seeds))
    theorem = "independent random numbers for each seed"
    return exact_row(repeated, 0.0, repeated == 0, quantity=REPEATED, theorem=theorem, n=len(record.seeds), **where)


def _twin_row(record: Training, where: dict[str, Any]) -> Comparison:
    """Return real processes have computed what simulated workers compute, or the other seeds say nothing about them."""
    assert record.apart is not None  # the caller has looked
    about: dict[str, Any] = {**where, "quantity": TWIN, "theorem": "the same steps, bit for bit"}
    about |= {"facts": {"compared": record.compared}, "n": len(record.seeds) - record.virtual}
    return exact_row(record.apart, 0.0, record.apart == 0 and record.compared > 0, **about)


def _beside(record: Training, base: Training, where: dict[str, Any]) -> Iterator[Comparison]:
    """Return what the run has reached beside the uncompressed one at the least tau, on the same seeds.

    On real data, what distorts little must end as low and label as well up to margins that are stated beforehand; of
    anything else is only asked that it does not diverge, and that it labels not much worse than by chance.
    """
    formula, first = record.data.get("synthetic", True), base.curve.loss[0]
    close = record is not base and _distorts_little(record) and not formula
    exactly_known = formula and record.compression.declared.constant == 0  # an exact law says more
    if record is base or not exactly_known:
        ours, theirs = float(np.mean(record.final_loss)), float(np.mean(base.final_loss))
        factor, least = (1.0 if record is base else DIVERGED), first
        if close:
            factor, least = 1 + LOSS_MARGIN, theirs
        words = "" if close else ", after a round"
        theorem = f"at most {factor:g} times that of {base.operator}, tau = {base.tau}{words}"
        yield exact_row(ours, factor * least, ours <= factor * least, "upper", quantity=LOSS, theorem=theorem, **where)
    accuracies, other = ([a for a in run.accuracy if a is not None] for run in (record, base))
    if accuracies and other and record.data.get("classes"):
        least = float(np.mean(other)) - ACCURACY_MARGIN if close else 0.5 / record.data["classes"]
        words = f"at most {ACCURACY_MARGIN:g} below that of {base.operator}, tau = {base.tau}"
        about = {**where, "theorem": words if close else "half chance", "quantity": "accuracy on held-out data"}
        accuracy = float(np.mean(accuracies))
        yield exact_row(accuracy, least, accuracy >= least, "lower", **about)


def _distorts_little(record: Training) -> bool:
    declared = record.compression.declared
    return covered(declared) or (declared.constant is not None and declared.constant <= LITTLE)


TOLERANCE = 0.10  # of the predicted seconds per iteration
GAIN_TOLERANCE = 0.20  # of the predicted gain, which divides two of them
QUIET = 1.1  # times the wanted step that nine steps in ten keep on a quiet machine
FAR = 1.5  # times the predicted seconds, or one over it: no disturbance of a quiet machine reaches so far


def seconds_rows(record: Training, runs: Sequence[Training], where: dict[str, Any]) -> Iterator[Comparison]:
    """Return the iteration, and for tau > 1 the gain over the smallest tau of the same operator."""
    predicted = predicted_seconds(record.timing, record.tau, record.processes)
    sample = _per_step(record)
    about = {**where, "unit": "s", "theorem": "E max of mean Y + D / tau", "quantity": "seconds per iteration"}
    interval = student_interval(sample, UNJUDGED)
    yield _timed_row(sample.mean, interval, predicted, TOLERANCE, quiet=quiet(record), n=sample.n, **about)
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
    quantity, both_quiet = f"times faster than tau = {slow.tau}", quiet(record) and quiet(slow)
    about = {**where, "quantity": quantity, "theorem": "(Y + D) / (Y + D / tau)", "n": after.n}
    return _timed_row(gain, interval, value, GAIN_TOLERANCE, quiet=both_quiet, **about)


def _timed_row(
    measured: float, interval: Interval, bound: float, tolerance: float, *, quiet: bool, **about: Any
) -> Comparison:
    verdict, reason = _judged(interval, bound, tolerance, quiet=quiet)
    about |= {"verdict": verdict, "reason": reason, "decides": False, "slack": FAR if quiet else math.inf}
    return Comparison(measured=measured, interval=interval, bound=bound, side="tight", **about)


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
