"""The clock of budgets: processor time, so that a busy machine costs a subject nothing."""

from __future__ import annotations

from time import monotonic, process_time

SLOWEST = 4  # seconds of sleep that count as one of work


def waited_s() -> float:
    """Return the seconds that this thread was ready without a processor; 0 where the system does not say."""
    try:
        with open("/proc/thread-self/schedstat") as counters:
            return 1e-9 * int(counters.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0


class Clock:
    """Seconds of work: processor time, at most real time, and at least a quarter of the time spent asleep.

    A subject that sleeps, or computes in other processes, so ends after four times its budget.  Waiting for a processor
    that others use counts nothing, where the system tells it from sleep.
    """

    def __init__(self) -> None:
        self._seconds, self._real, self._worked, self._waited = 0.0, monotonic(), process_time(), waited_s()

    def __call__(self) -> float:
        """Return the seconds of work since some moment."""
        real, worked = monotonic(), process_time()
        passed, working = real - self._real, worked - self._worked
        asleep = 0.0
        if passed / SLOWEST > working:
            waited = waited_s()
            asleep = max(0.0, passed - max(0.0, waited - self._waited))
            self._waited = waited
        self._seconds += min(passed, max(working, asleep / SLOWEST))
        self._real, self._worked = real, worked
        return self._seconds


work_s = Clock()
