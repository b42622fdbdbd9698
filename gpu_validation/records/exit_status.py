"""Names of a run's files, and what ends a run by wrong use or from outside."""

from ratedist.interfaces.exit_status import INTERRUPTED, TERMINATED

MEASUREMENTS, COMPARISONS = "measurements.jsonl", "comparisons.jsonl"
REPORT, SUMMARY = "report.html", "summary.svg"


class UsageError(ValueError):
    """Raised for wrong use; the text says what to do instead."""


class Terminated(KeyboardInterrupt):
    """Raised at SIGTERM; handled like Ctrl-C, with another exit status."""


def ending(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """Return exit status and description of a run that was ended from outside."""
    return (TERMINATED, "ended by SIGTERM") if isinstance(interrupt, Terminated) else (INTERRUPTED, "interrupted")
