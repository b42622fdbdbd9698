"""Exit statuses of ``ratedist`` and of ``gpu-validation``, and what each means."""

OK, VIOLATED, USAGE, FAILED, UNFINISHED, CRASHED, FILES, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 5, 6, 130, 143

STATUSES = {
    OK: "success: the answer is printed, or nothing is VIOLATED",
    VIOLATED: "a comparison is VIOLATED, a check did not pass, or nothing is feasible",
    USAGE: "wrong use: wrong arguments, a missing extra, a file that is no input, results of another commit",
    FAILED: "the run could not finish: a process died, raised an error or hung",
    UNFINISHED: "the time limit stopped the run: run the same command again to continue",
    CRASHED: "the program crashed: please report it",
    FILES: "a file of a run cannot be read or written: a full disk, a damaged record",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by SIGTERM",
}


def statuses_text() -> str:
    """Return the table for the end of a help text."""
    return "exit status:\n" + "\n".join(f"  {code:3}  {words}" for code, words in STATUSES.items())
