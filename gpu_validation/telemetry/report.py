"""Report on a training run, from the accounts of its ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bounds import limits
from ratedist import solve

from ..judging.intervals import median_of, student_interval
from ..records.compression import Sample
from .account import Account, Header
from .claims import judged, shared_rounds
from .periods import Known, Situation, advise
from .run_report import Compressor, Drift, Measure, Progress, RunReport, Timing, Traffic
from .samples import KeptRound, pooled

FALSE_ALARM = 1e-4
LEVEL = 0.95
MOST_PERIODS = 24
RECENT = 9  # last rounds, which describe the current situation


def report_of(
    accounts: Sequence[Account],
    *,
    known: Known | None = None,
    now: float | None = None,
    false_alarm: float = FALSE_ALARM,
) -> RunReport:
    """Return the report on a run.

    Parameters
    ----------
    accounts : sequence of Account
        Accounts of the reporting ranks in rank order, at least one.
    known : Known or None, optional
        Known constants of the problem.
    now : float or None, optional
        Wall clock in UNIX seconds; None takes that of the newest account.
    false_alarm : float, optional
        Probability that any row rejects a true claim, at whatever times the report is read, in (0, 1).
    """
    header, states = accounts[0].header, [account.state for account in accounts]
    timing = _timing(accounts)
    drift = _drift(accounts)
    decline = next((s.decline for s in states if s.decline is not None), None)
    tau = states[0].tau
    return RunReport(
        ranks=tuple(account.header.rank for account in accounts),
        size=header.size,
        d=header.d,
        operator=header.operator,
        schedule=header.schedule,
        mixing=header.mixing,
        progress=_progress(accounts, max(s.time for s in states) if now is None else now),
        compressor=_compressor(accounts),
        traffic=_traffic(accounts),
        timing=timing,
        drift=drift,
        retention=None if decline is None else max(0.0, 1 - decline * (tau - 1)),
        advice=() if timing is None else tuple(advise(header, _situation(accounts, timing, decline), known or Known())),
        comparisons=tuple(judged(accounts, false_alarm=false_alarm)),
    )


def _progress(accounts: Sequence[Account], now: float) -> Progress:
    states = [account.state for account in accounts]
    periods: list[tuple[int, int]] = []
    for kept in accounts[0].rounds:
        if not periods or periods[-1][1] != kept.tau:
            periods.append((kept.index, kept.tau))
    total = sum(s.computing_s + s.averaging_s for s in states)
    return Progress(
        steps=max(s.steps for s in states),
        synchronisations=max(s.rounds for s in states),
        seconds=max(s.seconds for s in states),
        periods=tuple(periods[-MOST_PERIODS:]),
        synchronising=sum(s.averaging_s for s in states) / total if total else math.nan,
        telemetry=sum(s.telemetry_s for s in states) / max(1e-9, sum(s.seconds for s in states)),
        silent_s=max(0.0, now - min(s.time for s in states)),
        ended=sum(s.ended for s in states),
    )


def _mean(sample: Sample) -> Measure:
    return Measure(sample.mean, student_interval(sample, 1 - LEVEL), sample.n)


def _compressor(accounts: Sequence[Account]) -> Compressor | None:
    declared, coordinates = accounts[0].header.declared, _coordinates(accounts)
    bits, ratio = (pooled(getattr(a.state, name) for a in accounts) for name in ("bits", "ratio"))
    if declared is None or bits is None or ratio is None:
        return None
    size = next((b for b in (declared.exact_bits, declared.expected_upper_bits) if b is not None), None)
    unbiased = declared.kind == "Unbiased"
    letter, limit = ("omega", limits.unbiased_bits) if unbiased else ("alpha", limits.contractive_bits)
    lossy = 0 < ratio.mean < (math.inf if unbiased else 1)
    d = math.floor(coordinates)  # shards differ by one coordinate; the limits of the shorter hold for both
    return Compressor(
        claim=declared.kind,
        constant=declared.constant,
        error=_mean(ratio),
        bits=_mean(bits),
        declared_bits=size,
        least_error=float(solve(d=d, bits=bits.mean, **{letter: None})) if bits.mean > 0 else None,
        least_bits=float(limit(d=d, **{letter: ratio.mean})) if lossy else None,
        coordinates=coordinates,
    )


def _coordinates(accounts: Sequence[Account]) -> float:
    """Return the mean number of coordinates per message, over all counted messages."""
    counted = [(a.header.coordinates, a.state.bits.n) for a in accounts if a.state.bits is not None]
    n = sum(messages for _, messages in counted)
    return sum(d * messages for d, messages in counted) / n if n else float(accounts[0].header.coordinates)


def _traffic(accounts: Sequence[Account]) -> Traffic | None:
    states = [account.state for account in accounts]
    n = sum(s.predicted for s in states)
    if not n:
        return None
    names = ("sent_bytes", "received_bytes", "expected_sent_bytes", "expected_received_bytes")
    return Traffic(*(sum(getattr(s, name) for s in states) / n for name in names))


def _timing(accounts: Sequence[Account]) -> Timing | None:
    timed = [kept for a in accounts for kept in a.rounds if kept.tau and math.isfinite(kept.compute_s)]
    steps = [kept.compute_s / kept.tau for kept in timed]
    together = shared_rounds(accounts)
    if not steps or not together:
        return None
    each = 1 - (1 - LEVEL) / 2  # so that the ratio's interval has the level
    step, delay = (
        median_of(values, level=each) for values in (steps, [min(kept.averaging_s for kept in r) for r in together])
    )
    waits = [np.mean([kept.averaging_s for kept in r]) - min(kept.averaging_s for kept in r) for r in together]
    ends = delay.interval[0] / step.interval[1], delay.interval[1] / step.interval[0]
    return Timing(
        step_s=Measure(step.value, step.interval, step.n),
        delay_s=Measure(delay.value, delay.interval, delay.n),
        delay_ratio=Measure(delay.value / step.value, ends, delay.n),
        waiting_s=float(np.median(waits)),
        alone=len(accounts) == 1 < accounts[0].header.size,
    )


def _looked_at(accounts: Sequence[Account]) -> list[KeptRound]:
    kept = (kept_round for account in accounts for kept_round in account.rounds if kept_round.tau)
    return [kept_round for kept_round in kept if math.isfinite(kept_round.away2) and math.isfinite(kept_round.model2)]


def _drift(accounts: Sequence[Account]) -> Drift | None:
    header, rounds = accounts[0].header, _looked_at(accounts)
    model2 = float(np.mean([kept_round.model2 for kept_round in rounds])) if rounds else 0.0
    if not model2 or header.size == 1:
        return None
    away2 = max(0.0, float(np.mean([_away2(header, kept_round) for kept_round in rounds])))
    unbiased = _unbiased(header)
    norm2 = sum(kept_round.norm2 for kept_round in rounds) if unbiased else 0.0
    kept = math.nan if not norm2 else 1 - away2 * len(rounds) / norm2
    return Drift(math.sqrt(away2 / model2), kept, len(rounds), not header.whole and not unbiased)


def _unbiased(header: Header) -> bool:
    return header.declared is not None and header.declared.kind == "Unbiased" and header.members > 1


def _away2(header: Header, one: KeptRound) -> float:
    """Return ``|x - mean movement|^2`` of one rank; for an unbiased operator an unbiased estimate of it."""
    return (1 - 1 / header.members) * (one.norm2 - one.paired) if _unbiased(header) else one.away2


def _situation(accounts: Sequence[Account], timing: Timing, decline: float | None) -> Situation:
    header, state, rounds = accounts[0].header, accounts[0].state, accounts[0].rounds
    noise = [_away2(header, kept) / kept.tau for kept in _looked_at(accounts)[-RECENT * len(accounts) :]]
    return Situation(
        tau=int(np.median([kept.tau for kept in rounds[-RECENT:]])),
        step_s=timing.step_s.value,
        delay_s=timing.delay_s.value,
        decline=decline,
        away2_a_step=float(np.mean(noise)) if noise else math.nan,
        loss=next((kept.loss for kept in rounds if math.isfinite(kept.loss)), math.nan),
        eta=rounds[-1].eta,
        seconds=state.seconds,
    )
