"""Progress of a run: the running unit, elapsed and remaining time; a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
