"""Rows on gradients and losses: theorems, exact laws, the cost of local steps, and the uncompressed run beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bounds import AssumptionViolated

from ...records.sample import Sample
from ...verdicts.judge import Judge, gated, rows_of
from ...verdicts.verdict import Comparison, Verdict, exact_verdict
from .records import Training
from .theory import AT_MEAN, LOSS, Law, combined_variance, covered, exact_laws, left_over, paired_laws, theorem_for

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
    apart = max(abs(sample.low - law.mean), abs(sample.high - law.mean))
    return Comparison(
        measured=sample.mean,
        interval=(sample.low, sample.high),
        bound=law.mean,
        side="tight",
        verdict=exact_verdict(apart <= DETERMINED * abs(law.mean)),
        n=sample.n,
        **about,
    )


def _repeated_row(record: Training, where: dict[str, Any]) -> Comparison:
    """Count the runs that copy another seed's; diverged runs may be equal."""
    runs = [run for run in zip(record.gradient_norm2, record.final_loss, strict=True) if np.isfinite(run).all()]
    repeated = len(runs) - len(set(runs)) + len(record.seeds) - len(set(record.seeds))
    return Comparison(
        quantity=REPEATED,
        measured=repeated,
        interval=(repeated, repeated),
        bound=0.0,
        side="tight",
        verdict=exact_verdict(repeated == 0),
        theorem="independent random numbers for each seed",
        n=len(record.seeds),
        **where,
    )


def _twin_row(record: Training, where: dict[str, Any]) -> Comparison:
    """Return real processes have computed what simulated workers compute, or the other seeds say nothing about them."""
    assert record.apart is not None  # the caller has looked
    return Comparison(
        quantity=TWIN,
        facts={"compared": record.compared},
        measured=record.apart,
        interval=(record.apart, record.apart),
        bound=0.0,
        side="tight",
        verdict=exact_verdict(record.apart == 0 and record.compared > 0),
        theorem="the same steps, bit for bit",
        n=len(record.seeds) - record.virtual,
        **where,
    )


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
        theorem = (
            f"at most {factor:g} times that of {base.operator}, tau = {base.tau}{'' if close else ', after a round'}"
        )
        yield _exact(LOSS, ours, factor * least, {**where, "theorem": theorem})
    accuracies, other = ([a for a in run.accuracy if a is not None] for run in (record, base))
    if accuracies and other and record.data.get("classes"):
        least = float(np.mean(other)) - ACCURACY_MARGIN if close else 0.5 / record.data["classes"]
        theorem = (
            f"at most {ACCURACY_MARGIN:g} below that of {base.operator}, tau = {base.tau}" if close else "half chance"
        )
        about = {**where, "theorem": theorem}
        yield _exact("accuracy on held-out data", float(np.mean(accuracies)), least, about, lower=True)


def _distorts_little(record: Training) -> bool:
    declared = record.compression.declared
    return covered(declared) or (declared.constant is not None and declared.constant <= LITTLE)


def _exact(quantity: str, measured: float, bound: float, common: dict[str, Any], *, lower: bool = False) -> Comparison:
    return Comparison(
        quantity=quantity,
        measured=measured,
        interval=(measured, measured),
        bound=bound,
        side="lower" if lower else "upper",
        verdict=exact_verdict(measured >= bound if lower else measured <= bound),
        **common,
    )
