"""Exit statuses of ``ratedist`` and of ``gpu-validation``, what each means, and how a Ctrl-C leads to its own."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OK, VIOLATED, USAGE, FAILED, UNFINISHED, CRASHED, FILES, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 6, 130, 143

STATUSES = {
    OK: "success: the answer is printed, or nothing is VIOLATED",
    VIOLATED: "a comparison that decides is VIOLATED, a check did not pass, or nothing is feasible",
    USAGE: "wrong use: wrong arguments, a missing extra, a file that is no input, results of another commit",
    FAILED: "the run could not finish: a process died, raised an error or hung",
    UNFINISHED: "the time limit stopped the run: run the same command again to continue",
    CRASHED: "the program crashed: please report it",
    FILES: "a file of a run cannot be read or written: a full disk, a damaged record",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}


def statuses_text() -> str:
    """Return the table for the end of a help text."""
    return "exit status:\n" + "\n".join(f"  {code:3}  {words}" for code, words in STATUSES.items())


@contextmanager
def every_interrupt_heard() -> Iterator[None]:
    """Repeat a Ctrl-C that Python drops, as it does with one that arrives while an object is deleted.

    Python prints "Exception ignored" for such an interrupt and goes on (``sys.unraisablehook``).  Here it is sent again
    when the deletion is over.
    """
    usual = sys.unraisablehook

    def heard(dropped: Any) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            threading.Timer(0.01, signal.raise_signal, (signal.SIGINT,)).start()
        else:
            usual(dropped)

    sys.unraisablehook = heard
    try:
        yield
    finally:
        sys.unraisablehook = usual
