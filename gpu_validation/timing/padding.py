"""Local steps of a set duration."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class PaddedSteps:
    """Extends every local step to a set duration by sleeping, so that ranks on the same cores do not compete.

    Parameters
    ----------
    step_s : float, seconds
        Duration of every step; 0 disables padding.
    drawn_s : sequence of float or None, seconds, optional
        Durations of successive steps, which replace step_s (stragglers; see ``step_seconds``).
    durations : list of float, optional
        Durations of the steps so far, including padding.
    overruns : int, optional
        Number of steps that took longer than their set duration.

    Notes
    -----
    A step that computes longer than its set duration is not interrupted; it counts as an overrun.
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
        """Sleep for the rest of the step.

        Raises
        ------
        IndexError
            After the last drawn step.
        """
        wanted_s = self.step_s if self.drawn_s is None else self.drawn_s[len(self.durations)]
        left = wanted_s - (time.perf_counter() - self._began)
        if left > 0:
            time.sleep(left)
        elif wanted_s > 0:
            self.overruns += 1
        self.durations.append(time.perf_counter() - self._began)

    def __enter__(self) -> PaddedSteps:
        self.begin()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.end()
