"""The table shown at the end of a run: one line an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .records import Comparison, Evidence, Probe, Training, Verdict

CAPTION = (
    "bits, error, gap: per coordinate of isotropic Gaussian input, codec bits, squared error and bits above the limit; "
    "H, V, I, O: comparisons that are HOLDS, VIOLATED, INCONCLUSIVE, OUT_OF_SCOPE"
)


def summary_table(records: Sequence[Probe | Training], comparisons: Sequence[Comparison]) -> Table:
    """Bits, distortion and gap on Gaussian input, and how many comparisons got each verdict."""
    table = Table(caption=CAPTION, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("operator", overflow="fold")
    for name in ("bits", "error", "gap", *(str(v)[0] for v in Verdict)):
        table.add_column(name, justify="right", no_wrap=True)
    for operator in dict.fromkeys(record.operator for record in records):
        mine = [c for c in comparisons if c.operator == operator]
        counted = Counter(str(c.verdict) for c in mine)
        counts = [str(counted[v]) for v in map(str, Verdict)]
        table.add_row(operator, *_gaussian(operator, records, mine), *counts)
    return table


def _gaussian(operator: str, records: Sequence[Probe | Training], mine: Sequence[Comparison]) -> tuple[str, str, str]:
    probes = [r for r in records if isinstance(r, Probe) and r.operator == operator]
    found = [p.compression for p in probes if p.compression.source == "gaussian"]
    if not found:
        return "", "", ""
    c = found[0]
    limits = [row for row in mine if row.workload == "gaussian" and row.quantity == "codec bits against the limit"]
    gap = f"{(limits[0].measured - limits[0].bound) / c.d:.3f}" if limits and limits[0].bound is not None else ""
    return f"{c.bits.mean / c.d:.3f}", f"{c.error_per_coordinate.mean:.4g}", gap


def evidence_line(comparisons: Sequence[Comparison]) -> str:
    """Every verdict's number, HOLDS split by what it is worth."""
    held = Counter(c.evidence for c in comparisons if c.verdict is Verdict.HOLDS)
    counted = Counter(c.verdict for c in comparisons)
    split = ", ".join(f"{held[evidence]} {evidence}" for evidence in Evidence)
    others = "  ".join(f"{counted[v]} {v}" for v in Verdict if v is not Verdict.HOLDS)
    return f"HOLDS: {split}  {others}"


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """One line a comparison: what was measured, its bound and the verdict."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("who", "on", "quantity"):
        table.add_column(name, overflow="fold")
    for name in ("measured", "bound", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for c in comparisons:
        bound = "" if c.bound is None else f"{c.bound:.4g}"
        table.add_row(c.operator, c.workload, c.quantity, f"{c.measured:.4g}", bound, str(c.verdict))
    return table
