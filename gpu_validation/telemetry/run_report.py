"""Report on a run: its numbers, rows with verdicts, and their text and JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bounds.frame import frame

from ..judging.console import headline
from ..judging.html import noticed_text
from ..judging.verdict import Comparison, Verdict
from ..records.storage import plain
from .periods import Advice
from .recorder import EVERY_ROUND, NEARLY_ALL

VERSION = 1


@dataclass(frozen=True)
class Measure:
    """A number with a 95 % interval.

    Parameters
    ----------
    value : float
        Estimate.
    interval : tuple of float
        Ends of its 95 % interval.
    n : int
        Number of observations.
    """

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Progress:
    """Progress of the run.

    Parameters
    ----------
    steps : int
        Local steps of a rank.
    synchronisations : int
        Averagings so far, compressed or not.
    seconds : float
        Time of the slowest rank, without pauses.
    periods : tuple of tuple of int
        (first round, tau) at every change of tau, over the kept rounds.
    synchronising : float
        Share of the time in averagings.
    telemetry : float
        Share of the time in telemetry.
    silent_s : float, seconds
        Time since the last line of the rank that has been silent longest.
    ended : int
        Ranks that have closed the averaging.
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
    """Length and error of the messages, over all reporting ranks.

    Parameters
    ----------
    claim : str
        "Unbiased", "Contractive", "StrictlyContractive" or "NoClaim".
    constant : float or None
        omega or alpha of the claim.
    error : Measure
        Mean ``|C(x) - x|^2/|x|^2``.
    bits : Measure, bits
        Mean length of a message.
    declared_bits : float or None, bits
        Declared upper limit of the mean length; None without one.
    least_error : float or None
        Lower limit of the error for the operator's class at these bits.
    least_bits : float or None, bits
        Lower limit of the bits for the operator's class at this error.  Both limits hold for the worst or a Gaussian
        vector; a vector with structure may need less.
    coordinates : float
        Mean number of coordinates per message: those of a shard in nodes.
    """

    claim: str
    constant: float | None
    error: Measure
    bits: Measure
    declared_bits: float | None
    least_error: float | None
    least_bits: float | None
    coordinates: float


@dataclass(frozen=True)
class Traffic:
    """Mean bytes of one rank per averaging.

    Parameters
    ----------
    sent_bytes : float, bytes
        Bytes sent, as counted.
    received_bytes : float, bytes
        Bytes received, as counted.
    expected_sent_bytes : float, bytes
        Bytes sent, from the messages' lengths.
    expected_received_bytes : float, bytes
        Bytes received, from the messages' lengths.
    """

    sent_bytes: float
    received_bytes: float
    expected_sent_bytes: float
    expected_received_bytes: float


@dataclass(frozen=True)
class Timing:
    """Medians over kept rounds, with order statistics as intervals; successive rounds are not independent.

    Parameters
    ----------
    step_s : Measure, seconds
        Time of a local step, including everything between averagings.
    delay_s : Measure, seconds
        Time of an averaging, seen by the last rank to arrive.
    delay_ratio : Measure
        D/Y; its interval is from the ends of both intervals.
    waiting_s : float, seconds
        Mean wait of a rank for the slowest.
    alone : bool
        Whether only one rank has reported, whose averagings include its own waiting.
    """

    step_s: Measure
    delay_s: Measure
    delay_ratio: Measure
    waiting_s: float
    alone: bool


@dataclass(frozen=True)
class Drift:
    """Distance of the local models from their mean at the end of rounds.

    Parameters
    ----------
    away : float
        Root mean square of ``|model - mean|``, over that of ``|mean|``.
    kept : float
        ``|mean movement|^2`` over the mean of ``|movement|^2``: 1 if all movements are equal, 1/m if they are
        orthogonal; nan if unknown.
    n : int
        Number of observations.
    compressed : bool
        Whether ``away`` includes the error of decoded movements.  The error of an unbiased operator is not included,
        for <x_i, C(x_j)> is <x_i, x_j> on average.
    """

    away: float
    kept: float
    n: int
    compressed: bool


@dataclass(frozen=True)
class Findings:
    """All numbers and rows of a report.

    Parameters
    ----------
    ranks : tuple of int
        Ranks that have reported, of ``size``.
    size : int
        Number of ranks.
    d : int
        Number of averaged parameters.
    operator : str
        Specification of the compressor.
    schedule : str
        Representation of the rule for local steps.
    mixing : str
        Representation of the mixing mode.
    progress : Progress
        Progress of the run.
    compressor : Compressor or None
        Realised error and bits; None if nothing was compressed.
    traffic : Traffic or None
        Bytes in both directions; None if not counted.
    timing : Timing or None
        D/Y; None before the first averaging.
    drift : Drift or None
        Distance between models; None if not measured.
    retention : float or None
        Share of the gradient left at the end of a round; None unless the schedule measures it.
    advice : tuple of Advice
        Predicted gains of other periods.
    comparisons : tuple of Comparison
        Rows with verdicts.
    version : int, optional
        Format of the record, for readers of older files.
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


if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class RunReport(Findings):
    """Report on a run: ``str`` returns the text, ``to_dict`` and ``to_json`` the numbers."""

    @property
    def accused(self) -> list[Comparison]:
        """The rows with verdict VIOLATED."""
        return [row for row in self.comparisons if row.verdict is Verdict.VIOLATED and row.decides]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with infinities and nan as texts."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "comparisons"}
        return fields | {"comparisons": [plain(row.line()) for row in self.comparisons]}

    def to_frame(self) -> DataFrame:
        """Return a frame with one row per comparison, with its fields, looseness and evidence."""
        return frame([row.line() for row in self.comparisons])

    def to_json(self) -> str:
        """Return ``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return _text(self)


WIDTH, INDENT = 110, 14
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
OVERDUE_S = 30.0
NOT_COMPARED = (
    f"buffers and optimizer states; models of other rounds than the first {NEARLY_ALL} and every {EVERY_ROUND}th after "
    "them; differences within the rounding error of an averaging"
)


def _text(report: Findings) -> str:
    """Return all parts of the report, below one another."""
    lines = [line for name, words in _parts(report) for line in _wrapped(name, words)]
    return "\n".join([*lines, "", *_table(report.comparisons), headline(report.comparisons)[0]])


def _wrapped(name: str, words: str) -> list[str]:
    first, rest = f"{name:{INDENT}}", " " * INDENT
    return textwrap.wrap(words, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _parts(r: Findings) -> Iterator[tuple[str, str]]:
    p = r.progress
    who = "all reporting" if len(r.ranks) == r.size else f"reporting: {', '.join(map(str, r.ranks))}"
    yield "run", f"{r.size} ranks ({who}), d = {r.d}, {r.operator or 'whole models'}, {r.schedule}, {r.mixing}"
    yield "progress", f"{p.steps} steps, {p.synchronisations} synchronisations in {p.seconds:.4g} s{_life(r)}"
    yield "periods", " ".join(f"{tau} (from round {first})" for first, tau in p.periods) or "none yet"
    yield from _compressor(r)
    if r.traffic is not None:
        t = r.traffic
        yield (
            "bytes",
            f"sent {t.sent_bytes:.6g}, received {t.received_bytes:.6g} per synchronisation and rank "
            f"(expected {t.expected_sent_bytes:.6g} and {t.expected_received_bytes:.6g})",
        )
    yield from _times(r)
    if r.drift is not None:
        kept = "" if math.isnan(r.drift.kept) else f"; averaging keeps {r.drift.kept:.3g} of the squared movement"
        error = ", including compression error" if r.drift.compressed else ""
        yield "drift", f"local models end {r.drift.away:.3g} |mean| from their mean{error} (n = {r.drift.n}){kept}"
    lost = 'not measured: only schedule="auto" does' if r.retention is None else f"{r.retention:.3g}"
    yield "retention", f"share of the gradient left at the end of a round: {lost}"
    for advice in r.advice:
        yield "better tau", _advice(advice)
    yield "not compared", NOT_COMPARED
    yield "telemetry", f"takes {100 * p.telemetry:.2g} % of the time and sends no bytes"


def _life(r: Findings) -> str:
    if r.progress.ended == len(r.ranks):
        return ", ended"
    if r.progress.silent_s > OVERDUE_S:
        return f"; a rank has been silent for {r.progress.silent_s:.0f} s: it has died, hangs, or is in a long round"
    return ""


def _compressor(r: Findings) -> Iterator[tuple[str, str]]:
    c = r.compressor
    if c is None:
        return
    claimed = "no claim" if c.constant is None else f"claimed at most {c.constant:.4g} ({c.claim})"
    least = "" if c.least_error is None else f"; lower limit of its class at these bits: {c.least_error:.3g}"
    yield "error", f"|C(x) - x|^2/|x|^2 = {_shown(c.error)}; {claimed}{least}"
    declared = "" if c.declared_bits is None else f", declared at most {c.declared_bits:.6g}"
    limit = "" if c.least_bits is None else f"; lower limit of its class at this error: {c.least_bits:.6g}"
    yield "bits", f"{_shown(c.bits)} per message, {c.bits.value / c.coordinates:.4g} per coordinate{declared}{limit}"


def _times(r: Findings) -> Iterator[tuple[str, str]]:
    t = r.timing
    if t is None:
        return
    yield (
        "seconds",
        f"Y = {_time(t.step_s)} per step, D = {_time(t.delay_s)} per synchronisation, D/Y = {_shown(t.delay_ratio)}",
    )
    wait = (
        "D includes this rank's wait for other ranks"
        if t.alone
        else f"in addition, a rank waits {_seconds(t.waiting_s)} for the slowest one (median)"
    )
    yield "", f"{100 * r.progress.synchronising:.3g} % of the time is synchronisation; {wait}"


def _advice(a: Advice) -> str:
    tau = "a longer round" if a.tau is None else f"tau = {a.tau}"
    gain = "" if math.isnan(a.factor) else f": {a.factor:.3g} times {a.of}"
    return f"{a.rule}: {tau}{gain}; assuming {'; '.join(a.assuming) or 'nothing more'}"


def _shown(m: Measure) -> str:
    return f"{m.value:.4g} [{m.interval[0]:.4g}, {m.interval[1]:.4g}]"


def _time(m: Measure) -> str:
    return f"{_seconds(m.value)} [{_seconds(m.interval[0])}, {_seconds(m.interval[1])}]"


def _seconds(value: float) -> str:
    scale, unit = next((u for u in UNITS if value >= u[0]), UNITS[-1])
    return f"{value / scale:.3g} {unit}"


def _table(rows: Sequence[Comparison]) -> list[str]:
    """Return a line for each comparison, the last column with the factors on the bound that it would notice."""
    lines = [f"{'verdict':14}{'quantity':42}{'measured':>12}{'bound':>12}  noticed at bound x"]
    for c in rows:
        bound = "" if c.bound is None else f"{c.bound:.5g}"
        worth = noticed_text(c) or str(c.evidence or "")
        lines.append(f"{c.verdict:14}{c.quantity:42}{c.measured:>12.5g}{bound:>12}  {worth}")
        if c.reason:
            lines += textwrap.wrap(c.reason, WIDTH, initial_indent=" " * INDENT, subsequent_indent=" " * INDENT)
    return lines
