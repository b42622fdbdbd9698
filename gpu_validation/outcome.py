"""How a run ends: exit codes, and the names of the files that it leaves."""

OK, VIOLATED, USAGE, FAILED, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 4, 130
MEASUREMENTS, COMPARISONS, REPORT = "measurements.jsonl", "comparisons.jsonl", "report.html"
