"""How a run ends: exit statuses, what raises them, and the names of the files that it leaves."""

OK, VIOLATED, USAGE, FAILED, UNFINISHED, CRASHED, FILES, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 6, 130, 143
MEASUREMENTS, COMPARISONS = "measurements.jsonl", "comparisons.jsonl"
REPORT, SUMMARY = "report.html", "summary.svg"

STATUSES = {
    OK: "nothing VIOLATED",
    VIOLATED: "something is VIOLATED",
    USAGE: "usage: wrong arguments, a missing extra, results of another commit, a folder in use",
    FAILED: "the run could not finish: a process died, raised or hung",
    UNFINISHED: "more to do: run again to go on",
    CRASHED: "an error of the program itself, with its traceback",
    FILES: "a file cannot be read or written: a full disk, a damaged record",
    INTERRUPTED: "Ctrl-C",
    TERMINATED: "SIGTERM",
}


class UsageError(ValueError):
    """What the user has asked for cannot be done; the words say what can."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; handled like Ctrl-C, but for the exit status."""


def ending(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """Exit status and word for a run that was ended from outside."""
    return (TERMINATED, "ended by SIGTERM") if isinstance(interrupt, Terminated) else (INTERRUPTED, "interrupted")
