"""Local steps of a chosen duration."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class PaddedSteps:
    """Fill every local step up to a chosen duration by sleeping, so that ranks sharing cores do not contend.

    Parameters
    ----------
    step_s : float, seconds
        Duration of every step; 0 switches padding off.
    drawn_s : sequence of float or None, seconds, optional
        Of each step in turn, in place of step_s (stragglers; see ``step_seconds``).
    durations : list of float, optional
        Of every step, padding included.
    overruns : int, optional
        Their number.

    Notes
    -----
    A step that computes longer than it should take is not cut short: it overran.
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
        """Sleep for what is left of the step.

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
