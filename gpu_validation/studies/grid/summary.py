"""The table shown at the end of a run of the grid: one line an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ...verdicts.verdict import Comparison, Verdict
from .records import Probe, Training

CAPTION = (
    "bits, error, gap: per coordinate of isotropic Gaussian input, codec bits, squared error and bits above the limit; "
    "H, V, I, O: comparisons that are HOLDS, VIOLATED, INCONCLUSIVE, OUT_OF_SCOPE"
)


def summary_table(records: Sequence[Probe | Training], comparisons: Sequence[Comparison]) -> Table:
    """Return bits, distortion and gap on Gaussian input, and how many comparisons got each verdict."""
    table = Table(caption=CAPTION, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("operator", overflow="fold")
    for name in ("bits", "error", "gap", *(str(v)[0] for v in Verdict)):
        table.add_column(name, justify="right", no_wrap=True)
    for operator in dict.fromkeys(record.operator for record in records):
        of_operator = [c for c in comparisons if c.operator == operator]
        counted = Counter(str(c.verdict) for c in of_operator)
        counts = [str(counted[v]) for v in map(str, Verdict)]
        table.add_row(operator, *_gaussian(operator, records, of_operator), *counts)
    return table


def _gaussian(operator: str, records: Sequence[Probe | Training], mine: Sequence[Comparison]) -> tuple[str, str, str]:
    probes = [r for r in records if isinstance(r, Probe) and r.operator == operator]
    compressions = [p.compression for p in probes if p.compression.source == "gaussian"]
    if not compressions:
        return "", "", ""
    c = compressions[0]
    limits = [row for row in mine if row.workload == "gaussian" and row.quantity == "codec bits against the limit"]
    gap = f"{(limits[0].measured - limits[0].bound) / c.d:.3f}" if limits and limits[0].bound is not None else ""
    return f"{c.bits.mean / c.d:.3f}", f"{c.error_per_coordinate.mean:.4g}", gap
