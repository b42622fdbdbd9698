"""How a run ends: exit statuses, what raises them, and the names of the files that it leaves."""

OK, VIOLATED, USAGE, FAILED, UNFINISHED, CRASHED, FILES, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 6, 130, 143
MEASUREMENTS, COMPARISONS = "measurements.jsonl", "comparisons.jsonl"
REPORT, SUMMARY = "report.html", "summary.svg"

STATUSES = {
    OK: "success: nothing is VIOLATED",
    VIOLATED: "a comparison is VIOLATED, or a check did not pass",
    USAGE: "wrong use: wrong arguments, a missing extra, results of another commit, a folder in use",
    FAILED: "the run could not finish: a process died, raised or hung",
    UNFINISHED: "the time limit stopped the run: run the same command again to continue",
    CRASHED: "the program crashed; a traceback is printed",
    FILES: "a file cannot be read or written: a full disk, a damaged record",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}


class UsageError(ValueError):
    """What the user has asked for cannot be done; the words say what can."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; handled like Ctrl-C, but for the exit status."""


def ending(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """Exit status and word for a run that was ended from outside."""
    return (TERMINATED, "ended by SIGTERM") if isinstance(interrupt, Terminated) else (INTERRUPTED, "interrupted")
