"""Table at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..verdicts.verdict import Comparison, Evidence, Verdict


def evidence_line(comparisons: Sequence[Comparison]) -> str:
    """Return the count of every verdict, with HOLDS split by power."""
    held = Counter(c.evidence for c in comparisons if c.verdict is Verdict.HOLDS)
    counted = Counter(c.verdict for c in comparisons)
    split = ", ".join(f"{held[evidence]} {evidence}" for evidence in Evidence)
    others = "  ".join(f"{counted[v]} {v}" for v in Verdict if v is not Verdict.HOLDS)
    return f"HOLDS: {split}  {others}"


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return a table with one row per comparison: measured number, bound and verdict."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("who", "on", "quantity"):
        table.add_column(name, overflow="fold")
    for name in ("measured", "bound", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for c in comparisons:
        bound = "" if c.bound is None else f"{c.bound:.4g}"
        table.add_row(c.operator, c.workload, c.quantity, f"{c.measured:.4g}", bound, str(c.verdict))
    return table
