"""What ends a run from outside or by wrong use, with its exit status, and the names of its files."""

from ratedist.interfaces.exit_status import CRASHED as CRASHED
from ratedist.interfaces.exit_status import FAILED as FAILED
from ratedist.interfaces.exit_status import FILES as FILES
from ratedist.interfaces.exit_status import INTERRUPTED as INTERRUPTED
from ratedist.interfaces.exit_status import OK as OK
from ratedist.interfaces.exit_status import STATUSES as STATUSES
from ratedist.interfaces.exit_status import TERMINATED as TERMINATED
from ratedist.interfaces.exit_status import UNFINISHED as UNFINISHED
from ratedist.interfaces.exit_status import USAGE as USAGE
from ratedist.interfaces.exit_status import VIOLATED as VIOLATED

MEASUREMENTS, COMPARISONS = "measurements.jsonl", "comparisons.jsonl"
REPORT, SUMMARY = "report.html", "summary.svg"


class UsageError(ValueError):
    """Raised for wrong use; the text says what to do instead."""


class Terminated(KeyboardInterrupt):
    """Raised at SIGTERM; handled like Ctrl-C, with another exit status."""


def ending(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """Return exit status and description of a run that was ended from outside."""
    return (TERMINATED, "ended by SIGTERM") if isinstance(interrupt, Terminated) else (INTERRUPTED, "interrupted")
