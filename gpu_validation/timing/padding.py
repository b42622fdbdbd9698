"""Local steps of a chosen duration."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class PaddedSteps:
    """Fill every local step up to ``step_s`` by sleeping, so that ranks sharing cores do not contend.

    step_s : target duration; 0 switches padding off.  durations : of every step, padding included.
    """

    step_s: float
    durations: list[float] = field(default_factory=list)
    _began: float = 0.0

    def begin(self) -> None:
        """Mark the start of a local step."""
        self._began = time.perf_counter()

    def end(self) -> None:
        """Sleep for what is left of the step."""
        left = self.step_s - (time.perf_counter() - self._began)
        if left > 0:
            time.sleep(left)
        self.durations.append(time.perf_counter() - self._began)
