"""Local steps of a chosen duration."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class PaddedSteps:
    """Fill every local step up to a chosen duration by sleeping, so that ranks sharing cores do not contend.

    step_s : duration of every step; 0 switches padding off.  drawn_s : of each step in turn, in place of step_s
    (stragglers; see ``step_seconds``).  durations : of every step, padding included.
    A step that computes longer than it should take is not cut short: it overran.
    overruns : their number.
    """

    step_s: float
    drawn_s: Sequence[float] | None = None
    durations: list[float] = field(default_factory=list)
    overruns: int = 0
    _began: float = 0.0

    def begin(self) -> None:
        """Mark the start of a local step."""
        self._began = time.perf_counter()

    def end(self) -> None:
        """Sleep for what is left of the step.  Raises IndexError after the last drawn step."""
        wanted_s = self.step_s if self.drawn_s is None else self.drawn_s[len(self.durations)]
        left = wanted_s - (time.perf_counter() - self._began)
        if left > 0:
            time.sleep(left)
        elif wanted_s > 0:
            self.overruns += 1
        self.durations.append(time.perf_counter() - self._began)
