"""The report on a run of one's own: typed numbers, verdicts with their power, and a text for people."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounds import limits
from ratedist import solve

from ..records import Comparison, Sample, Verdict, plain
from ..time_to_loss import median_of
from ..verdicts.intervals import student_interval
from .account import Account, Header
from .claims import judged, shared_rounds
from .periods import Advice, Known, Situation, advise
from .samples import KeptRound, pooled

VERSION = 1
FALSE_ALARM = 1e-4
LEVEL = 0.95
MOST_PERIODS = 24
RECENT = 9  # rounds that say how things stand now


@dataclass(frozen=True)
class Measure:
    """A number with a 95 % interval.  value : itself.  n : from how many."""

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Progress:
    """How far the run is.

    steps, synchronisations : local steps of a rank, averagings.  seconds : of the slowest rank, pauses left out.
    periods : (first round, tau) wherever tau changed, of the kept rounds.  synchronising, telemetry : shares of the
    time.  silent_s : since the last sign of life of the rank that has been silent for longest.  ended : ranks that have
    let go of the averaging.
    """

    steps: int
    synchronisations: int
    seconds: float
    periods: tuple[tuple[int, int], ...]
    synchronising: float
    telemetry: float
    silent_s: float
    ended: int


@dataclass(frozen=True)
class Compressor:
    """What messages cost and how wrong they are, over all ranks that are heard.

    claim : "Unbiased", "Contractive", "StrictlyContractive" or "NoClaim"; constant : its omega or alpha.
    error : mean |C(x) - x|^2/|x|^2.  bits : mean length of a message.  declared_bits : its mean, at most; None if
    nothing is said.  least_error : below which no operator of the class comes at these bits.  least_bits : at this
    error.  Both limits are about the worst or a Gaussian vector; one with structure may cost less.
    """

    claim: str
    constant: float | None
    error: Measure
    bits: Measure
    declared_bits: float | None
    least_error: float | None
    least_bits: float | None


@dataclass(frozen=True)
class Traffic:
    """Mean bytes of one averaging of one rank.

    sent_bytes, received_bytes : counted.  expected_sent_bytes, expected_received_bytes : from the messages' lengths.
    """

    sent_bytes: float
    received_bytes: float
    expected_sent_bytes: float
    expected_received_bytes: float


@dataclass(frozen=True)
class Timing:
    """Medians over kept rounds, with order statistics as intervals; rounds that follow each other are not independent.

    step_s : of a local step, everything between averagings included.  delay_s : of an averaging, as the last rank to
    arrive saw it.  delay_ratio : D/Y, from the ends of both.  waiting_s : for the slowest rank, mean over ranks.
    alone : whether one rank only is heard, whose averagings include its own waiting.
    """

    step_s: Measure
    delay_s: Measure
    delay_ratio: Measure
    waiting_s: float
    alone: bool


@dataclass(frozen=True)
class Drift:
    """How far local models end from their mean.

    away : root mean square of |model - mean|, over that of |mean|.  n : from how many.
    kept : |mean movement|^2 over the mean |movement|^2: 1 if all ranks move alike, 1/m if in unrelated directions; nan
    where it is not known.
    compressed : whether the mean is that of decoded movements, so that ``away`` includes their error.  An unbiased
    operator's is not included: <x_i, C(x_j)> is <x_i, x_j> on average.
    """

    away: float
    kept: float
    n: int
    compressed: bool


@dataclass(frozen=True)
class RunReport:
    """What a run tells about itself; ``str`` gives the text, ``to_dict`` and ``to_json`` the numbers.

    ranks : those heard, of ``size``.  d : parameters.  operator, schedule, mixing : in words.
    progress, compressor, traffic, timing, drift : the parts, None where nothing was measured yet.
    retention : share of the gradient that is left at the end of a round, None unless the schedule measures it.
    advice : what other periods would gain.  comparisons : the rows with verdicts.  version : of the record.
    """

    ranks: tuple[int, ...]
    size: int
    d: int
    operator: str
    schedule: str
    mixing: str
    progress: Progress
    compressor: Compressor | None
    traffic: Traffic | None
    timing: Timing | None
    drift: Drift | None
    retention: float | None
    advice: tuple[Advice, ...]
    comparisons: tuple[Comparison, ...]
    version: int = VERSION

    @property
    def accused(self) -> list[Comparison]:
        """What is VIOLATED."""
        return [row for row in self.comparisons if row.verdict is Verdict.VIOLATED and row.decides]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities and nan as texts."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "comparisons"}
        return fields | {"comparisons": [plain(row.line()) for row in self.comparisons]}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        from .text import text

        return text(self)


def report_of(
    accounts: Sequence[Account],
    *,
    known: Known | None = None,
    now: float | None = None,
    false_alarm: float = FALSE_ALARM,
) -> RunReport:
    """The report on a run.

    accounts : of the ranks that are heard, in rank order, at least one.  known : constants of the problem.
    now : the wall clock, UNIX seconds; by default that of the newest account.  false_alarm : chance that a row accuses
    a true claim, however often one looks.
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
    for one in accounts[0].rounds:
        if not periods or periods[-1][1] != one.tau:
            periods.append((one.index, one.tau))
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
    declared, d = accounts[0].header.declared, accounts[0].header.d
    bits, ratio = (pooled(getattr(a.state, name) for a in accounts) for name in ("bits", "ratio"))
    if declared is None or bits is None or ratio is None:
        return None
    size = next((b for b in (declared.exact_bits, declared.expected_upper_bits) if b is not None), None)
    unbiased = declared.kind == "Unbiased"
    letter, limit = ("omega", limits.unbiased_bits) if unbiased else ("alpha", limits.contractive_bits)
    lossy = 0 < ratio.mean < (math.inf if unbiased else 1)
    return Compressor(
        claim=declared.kind,
        constant=declared.constant,
        error=_mean(ratio),
        bits=_mean(bits),
        declared_bits=size,
        least_error=float(solve(d=d, bits=bits.mean, **{letter: None})) if bits.mean > 0 else None,
        least_bits=float(limit(d=d, **{letter: ratio.mean})) if lossy else None,
    )


def _traffic(accounts: Sequence[Account]) -> Traffic | None:
    states = [account.state for account in accounts]
    n = sum(s.foretold for s in states)
    if not n:
        return None
    names = ("sent_bytes", "received_bytes", "expected_sent_bytes", "expected_received_bytes")
    return Traffic(*(sum(getattr(s, name) for s in states) / n for name in names))


def _timing(accounts: Sequence[Account]) -> Timing | None:
    timed = [one for a in accounts for one in a.rounds if one.tau and math.isfinite(one.compute_s)]
    steps = [one.compute_s / one.tau for one in timed]
    together = shared_rounds(accounts)
    if not steps or not together:
        return None
    each = 1 - (1 - LEVEL) / 2  # so that the ratio's interval has the level
    step, delay = (
        median_of(values, level=each) for values in (steps, [min(one.averaging_s for one in r) for r in together])
    )
    waits = [np.mean([one.averaging_s for one in r]) - min(one.averaging_s for one in r) for r in together]
    ends = delay.interval[0] / step.interval[1], delay.interval[1] / step.interval[0]
    return Timing(
        step_s=Measure(step.value, step.interval, step.n),
        delay_s=Measure(delay.value, delay.interval, delay.n),
        delay_ratio=Measure(delay.value / step.value, ends, delay.n),
        waiting_s=float(np.median(waits)),
        alone=len(accounts) == 1 < accounts[0].header.size,
    )


def _looked_at(accounts: Sequence[Account]) -> list[KeptRound]:
    kept = (one for account in accounts for one in account.rounds if one.tau)
    return [one for one in kept if math.isfinite(one.away2) and math.isfinite(one.model2)]


def _drift(accounts: Sequence[Account]) -> Drift | None:
    header, rounds = accounts[0].header, _looked_at(accounts)
    model2 = float(np.mean([one.model2 for one in rounds])) if rounds else 0.0
    if not model2 or header.size == 1:
        return None
    away2 = max(0.0, float(np.mean([_away2(header, one) for one in rounds])))
    unbiased = _unbiased(header)
    norm2 = sum(one.norm2 for one in rounds) if unbiased else 0.0
    kept = math.nan if not norm2 else 1 - away2 * len(rounds) / norm2
    return Drift(math.sqrt(away2 / model2), kept, len(rounds), not header.whole and not unbiased)


def _unbiased(header: Header) -> bool:
    return header.declared is not None and header.declared.kind == "Unbiased" and header.members > 1


def _away2(header: Header, one: KeptRound) -> float:
    """|x - mean movement|^2 of one rank, of an unbiased operator on average only."""
    return (1 - 1 / header.members) * (one.norm2 - one.paired) if _unbiased(header) else one.away2


def _situation(accounts: Sequence[Account], timing: Timing, decline: float | None) -> Situation:
    header, state, rounds = accounts[0].header, accounts[0].state, accounts[0].rounds
    noise = [_away2(header, one) / one.tau for one in _looked_at(accounts)[-RECENT * len(accounts) :]]
    return Situation(
        tau=int(np.median([one.tau for one in rounds[-RECENT:]])),
        step_s=timing.step_s.value,
        delay_s=timing.delay_s.value,
        decline=decline,
        away2_a_step=float(np.mean(noise)) if noise else math.nan,
        loss=next((one.loss for one in rounds if math.isfinite(one.loss)), math.nan),
        eta=rounds[-1].eta,
        seconds=state.seconds,
    )
