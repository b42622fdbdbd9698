"""The clock of budgets: processor time, so that a busy machine costs a subject nothing."""

from __future__ import annotations

from time import monotonic, process_time

SLOWEST = 4  # seconds of waiting that count as one of work


class Clock:
    """Seconds of work: processor time, at most real time, and at least a quarter of it.

    A subject that sleeps, or computes in other processes, so ends after four times its budget.
    """

    def __init__(self) -> None:
        self._seconds, self._real, self._worked = 0.0, monotonic(), process_time()

    def __call__(self) -> float:
        """Return the seconds of work since some moment."""
        real, worked = monotonic(), process_time()
        passed = real - self._real
        self._seconds += min(passed, max(worked - self._worked, passed / SLOWEST))
        self._real, self._worked = real, worked
        return self._seconds


work_s = Clock()
