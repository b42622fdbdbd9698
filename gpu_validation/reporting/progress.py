"""Progress of a run: a bar on a terminal, a line every ten seconds in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

LINE_S = 10.0


@contextmanager
def advancing(
    console: Console, total: int, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Inside, progress is shown; call the yielded function with the title of every finished unit.

    ``clock`` returns seconds.
    """
    if not console.is_terminal:
        yield Lines(console, total, clock).advance
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda title: bar.update(task, advance=1, description=title)


class Lines:
    """Prints the number of finished units, at most once in ten seconds."""

    def __init__(self, console: Console, total: int, clock: Callable[[], float]) -> None:
        self._console, self._total, self._clock = console, total, clock
        self._started = self._said = clock()
        self._done = 0

    def advance(self, title: str) -> None:
        """Count a unit with this title."""
        self._done += 1
        now = self._clock()
        if now - self._said >= LINE_S:
            self._said = now
            words = f"{self._done} of {self._total} units after {now - self._started:.0f} s: {title}"
            self._console.print(words, highlight=False, markup=False, soft_wrap=True)
