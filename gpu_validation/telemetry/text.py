"""Report as text of at most 110 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from ..judging.console import headline
from ..judging.html import noticed_text
from ..judging.verdict import Comparison
from .findings import Findings, Measure
from .periods import Advice
from .recorder import EVERY_ROUND, NEARLY_ALL

WIDTH, INDENT = 110, 14
UNITS = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
OVERDUE_S = 30.0
NOT_COMPARED = (
    f"buffers and optimizer states; models of other rounds than the first {NEARLY_ALL} and every {EVERY_ROUND}th after "
    "them; differences within the rounding error of an averaging"
)


def text(report: Findings) -> str:
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
    """Return one line per comparison; the last column shows the power of a HOLDS."""
    lines = [f"{'verdict':14}{'quantity':42}{'measured':>12}{'bound':>12}  noticed at bound x"]
    for c in rows:
        bound = "" if c.bound is None else f"{c.bound:.5g}"
        worth = noticed_text(c) or str(c.evidence or "")
        lines.append(f"{c.verdict:14}{c.quantity:42}{c.measured:>12.5g}{bound:>12}  {worth}")
        if c.reason:
            lines += textwrap.wrap(c.reason, WIDTH, initial_indent=" " * INDENT, subsequent_indent=" " * INDENT)
    return lines
