"""One line to the user when compilation keeps a process waiting."""

from __future__ import annotations

import logging
import time
from typing import Any

from numba.core import event

from .folders import folders, writable_folder

log = logging.getLogger("operators")

PATIENCE_S = 1.0


class Notice(event.Listener):
    """Add the seconds of compilations up, and say once what is going on when they exceed ``PATIENCE_S``."""

    def __init__(self) -> None:
        self._depth, self._spent_s, self._begun_s, self._was_given = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        """Begin to count at the outermost function, and look at the clock at those that it calls."""
        module = event.data["dispatcher"].py_func.__module__
        if not self._depth and module.partition(".")[0] != __name__.partition(".")[0]:
            return  # a loop of the user's own
        now_s = time.perf_counter()
        if not self._depth:
            self._begun_s = now_s
        self._depth += 1
        self._look(now_s)

    def on_end(self, event: Any) -> None:
        """Keep the seconds of the outermost function."""
        if not self._depth:
            return
        now_s = time.perf_counter()
        self._look(now_s)
        self._depth -= 1
        if not self._depth:
            self._spent_s += now_s - self._begun_s

    def _look(self, now_s: float) -> None:
        if not self._was_given and self._spent_s + now_s - self._begun_s > PATIENCE_S:
            self._was_given = True
            log.warning(sentence())


def sentence() -> str:
    """Return the notice to the user: where the code will be, or why there is no such place."""
    folder = writable_folder()
    if folder is not None:
        return (
            f"compiling loops for this processor, once: the code is kept in {folder}; "
            "python -m operators.precompile compiles those of all operators beforehand"
        )
    places = " nor ".join(str(folder) for folder in folders())
    return (
        f"compiling loops for this processor, again in every process: neither {places} can be written; "
        "set NUMBA_CACHE_DIR to a folder that can"
    )
