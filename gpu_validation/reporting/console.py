"""The tables and the lines shown at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..verdicts.verdict import Comparison, Outcome, Verdict

HEADS = {  # of columns that are narrower than the word
    Outcome.EVIDENCE: "evi-\ndence",
    Outcome.SAME_CODE: "same\ncode",
    Outcome.NO_POWER: "no\npower",
    Outcome.INCONCLUSIVE: "incon-\nclus.",
    Outcome.NOT_COVERED: "not\ncov.",
    Outcome.VIOLATED: "VIO-\nLATED",
}


def headline(comparisons: Sequence[Comparison]) -> tuple[str, bool]:
    """Return what a run shows in one line, and whether nothing is VIOLATED.

    Parameters
    ----------
    comparisons : sequence of Comparison
        All comparisons of the run.
    """
    violated = [c for c in comparisons if c.verdict is Verdict.VIOLATED]
    counted = Counter(c.outcome for c in comparisons)
    silent = " (timings, which never decide)" if violated and not any(c.decides for c in violated) else ""
    words = f"{counted[Outcome.EVIDENCE]} of {len(comparisons)} comparisons are evidence; {len(violated)} VIOLATED"
    return f"{words}{silent}", not violated


MEANING = (
    "evidence: the theorem held, and the row would have failed at twice its bound; same code: both numbers come from "
    "one computation; no power: a wrong bound would not have been noticed; inconclusive: the interval straddles the "
    "bound or is too wide; not covered: an assumption of the theorem is not met"
)


def outcome_table(comparisons: Sequence[Comparison]) -> Table:
    """Return one line per operator: how many comparisons had each outcome."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("operator", overflow="fold", vertical="bottom")
    for outcome in Outcome:
        table.add_column(HEADS[outcome], justify="right", no_wrap=True)
    for operator in dict.fromkeys(c.operator for c in comparisons):
        counted = Counter(c.outcome for c in comparisons if c.operator == operator)
        table.add_row(operator, *(str(counted[outcome]) for outcome in Outcome))
    return table


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return one line per comparison: the measured number, its bound and the verdict."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("operator", "on", "quantity"):
        table.add_column(name, overflow="fold")
    for name in ("measured", "bound", "verdict"):
        table.add_column(name, justify="right", no_wrap=True)
    for c in comparisons:
        bound = "" if c.bound is None else f"{c.bound:.4g}"
        table.add_row(c.operator, c.workload, c.quantity, f"{c.measured:.4g}", bound, str(c.verdict))
    return table
