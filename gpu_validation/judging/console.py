"""Outcomes of rows on a console, and the progress of a long run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .verdict import Comparison, Outcome, Verdict

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
    if comparisons and not counted[Outcome.EVIDENCE] and not violated:
        words += ": no row would have shown a wrong bound"
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


if TYPE_CHECKING:
    from rich.console import Console

LINE_S = 10.0


@contextmanager
def advancing(
    console: Console, units: Sequence[str], kept: int = 0, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Inside, progress is shown; call the yielded function with the title of every finished unit.

    ``kept`` is the number of units of an earlier run.  ``clock`` returns seconds.
    """
    progress = Progress(units, kept, clock)
    if not console.is_terminal:
        yield Lines(console, progress).advance
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(progress.now(), total=len(units))

        def advance(title: str) -> None:
            progress.finish(title)
            bar.update(task, advance=1, description=progress.now())

        yield advance


class Progress:
    """Finished units of a run, and the one that is running."""

    def __init__(self, units: Sequence[str], kept: int, clock: Callable[[], float]) -> None:
        self.waiting, self.total, self.kept, self.clock = dict.fromkeys(units), len(units), kept, clock
        self.started = clock()

    def finish(self, title: str) -> None:
        """Count a unit with this title."""
        self.waiting.pop(title, None)

    @property
    def done(self) -> int:
        """Number of finished units."""
        return self.total - len(self.waiting)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start of this run."""
        return self.clock() - self.started

    def now(self) -> str:
        """Return the remaining time, if units of this run have ended, and the running unit."""
        measured, running = self.done - self.kept, next(iter(self.waiting), "")
        if not running:
            return "report"
        left_s = self.elapsed_s / measured * len(self.waiting) if measured > 0 else None
        return f"running {running}" if left_s is None else f"about {left_s:.0f} s left; running {running}"


class Lines:
    """Prints the number of finished units and the running one, at most once in ten seconds."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console, self._progress = console, progress
        self._said_s = 0.0

    def advance(self, title: str) -> None:
        """Count a unit with this title."""
        progress = self._progress
        progress.finish(title)
        if progress.elapsed_s - self._said_s >= LINE_S:
            self._said_s = progress.elapsed_s
            words = f"{progress.done} of {progress.total} units after {self._said_s:.0f} s, {progress.now()}"
            self._console.print(words, highlight=False, markup=False, soft_wrap=True)
