"""Reports on a run from another process, from its telemetry folder: once, or until the run ends."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..judging.html import page
from ..records.storage import write_atomically
from .account import Account
from .journal import read_folder
from .periods import Known
from .report import FALSE_ALARM, report_of
from .run_report import RunReport

REFRESH_S = 2.0


@dataclass(frozen=True)
class View:
    """A run as its folder shows it at one moment.

    Parameters
    ----------
    report : RunReport
        Report of the accounts.
    gone : tuple of int
        Ranks of this machine whose process has ended without closing its account.
    """

    report: RunReport
    gone: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.report) + (f"\n\n{self.death}" if self.death else "")

    @property
    def death(self) -> str:
        """A sentence about processes that have died; empty if none has."""
        if not self.gone:
            return ""
        who = ", ".join(map(str, self.gone))
        return f"The process of rank {who} has ended before the end of the run; the report covers what it had written."

    @property
    def over(self) -> bool:
        """Whether no further lines will follow from any reporting rank."""
        return self.report.progress.ended + len(self.gone) == len(self.report.ranks)


def view(folder: str | os.PathLike[str], *, known: Known | None = None) -> View:
    """Read a folder and return its report.

    Raises
    ------
    UsageError
        If nothing can be read.
    """
    accounts = read_folder(folder)
    return View(report_of(accounts, known=known, now=time.time()), _gone(accounts))


def _gone(accounts: Sequence[Account]) -> tuple[int, ...]:
    this_host = socket.gethostname()
    unfinished = [a.header for a in accounts if a.header.host == this_host and not a.state.ended]
    return tuple(h.rank for h in unfinished if not Path(f"/proc/{h.pid}").exists())


def watch(seen: Callable[[], View], show: Callable[[View], None], *, once: bool) -> View:
    """Show the run now and, unless ``once``, every two seconds until it ends or Ctrl-C; return the last view."""
    last = seen()
    show(last)
    with suppress(KeyboardInterrupt):
        while not once and not last.over:
            time.sleep(REFRESH_S)
            last = seen()
            show(last)
    return last


@dataclass(frozen=True)
class _Title:
    name: str
    description: str
    false_alarm: float = FALSE_ALARM


def write_page(seen: View, folder: Path, path: Path) -> None:
    """Write the report as one HTML page.

    Raises
    ------
    OSError
        If the page cannot be written.
    """
    title = _Title(f"run in {folder.name}", f"{seen.report.size} ranks, {seen.report.progress.steps} steps so far")
    text = page(
        title, [f"<pre>{escape(str(seen.report))}</pre>"], seen.report.comparisons, seen.death, seen.report.schedule
    )
    write_atomically(path, text)
