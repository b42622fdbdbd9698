"""Exit statuses of a run, the exceptions behind them, and the names of its files."""

OK, VIOLATED, USAGE, FAILED, UNFINISHED, CRASHED, FILES, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 6, 130, 143
MEASUREMENTS, COMPARISONS = "measurements.jsonl", "comparisons.jsonl"
REPORT, SUMMARY = "report.html", "summary.svg"

STATUSES = {
    OK: "success: nothing is VIOLATED",
    VIOLATED: "a comparison is VIOLATED, or a check did not pass",
    USAGE: "wrong use: wrong arguments, a missing extra, results of another commit, a folder in use",
    FAILED: "the run could not finish: a process died, raised an error or hung",
    UNFINISHED: "the time limit stopped the run: run the same command again to continue",
    CRASHED: "the program crashed; a traceback is printed",
    FILES: "a file cannot be read or written: a full disk, a damaged record",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}


class UsageError(ValueError):
    """Raised for wrong use; the text says what to do instead."""


class Terminated(KeyboardInterrupt):
    """Raised at SIGTERM; handled like Ctrl-C, with another exit status."""


def ending(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """Return exit status and description of a run that was ended from outside."""
    return (TERMINATED, "ended by SIGTERM") if isinstance(interrupt, Terminated) else (INTERRUPTED, "interrupted")
