"""The records of the conformance kit: wrong subjects by kind, honest runs, stated powers, seconds."""

from __future__ import annotations

import json
from collections import Counter

from markdown_text import code, escape, number, table
from records import DATA, lines_of, rows_of, with_provenance

KINDS, HONEST, POWERS, SECONDS = (
    f"{name}.jsonl" for name in ("wrong_by_kind", "honest_runs", "stated_powers", "kit_seconds")
)


def kit_kinds_table() -> str:
    """Of each kind and form, how many wrong subjects were tried and failed."""
    rows = lines_of(KINDS)
    tried = Counter((row["kind"], row["form"]) for row in rows)
    failed = Counter((row["kind"], row["form"]) for row in rows if row["failed"])
    cells = [
        [kind, *(f"{failed[kind, form]} of {tried[kind, form]}" if tried[kind, form] else "" for form in forms)]
        for kind in dict.fromkeys(row["kind"] for row in rows)
        for forms in [("Operator", "function", "")]
    ]
    header = ["kind", "Operators that fail", "functions that fail", "wrappers, hooks and exchanges that fail"]
    return with_provenance(KINDS, table(header, cells))


def kit_misses() -> str:
    """The wrong subjects that passed, as a list; a sentence where there is none."""
    missed = [row for row in lines_of(KINDS) if not row["failed"]]
    lines = [f"- {row['kind']}: {escape(row['fault'])}" + f" ({row['form']})" * bool(row["form"]) for row in missed]
    return "\n".join(lines) or "None of them passed."


def kit_wrong() -> str:
    """How many wrong subjects failed, of all that were tried."""
    rows = lines_of(KINDS)
    return f"{sum(bool(row['failed']) for row in rows)} of {len(rows)}"


def kit_honest() -> str:
    """How many whole checks of honest subjects were made, and how many accused one."""
    rows = lines_of(HONEST)
    accused = [row for row in rows if row["failures"]]
    named = "; ".join(
        f"{code(row['subject'])} at seed {row['seed']} by {', '.join(row['failures'])}" for row in accused
    )
    subjects = len({row["subject"] for row in rows})
    return f"{len(accused)} of n = {len(rows)} checks of {subjects} honest subjects ended in a FAIL" + (
        f" ({named})" if named else ""
    )


def kit_powers() -> str:
    """How many defects of 1.2 times the stated power failed, and how the stated powers compare with those recorded."""
    rows = [row for row in lines_of(POWERS) if row["stated"] is not None]
    ratios = json.loads((DATA / POWERS.replace("jsonl", "json")).read_text())["medians_over_recorded_ones"]
    refuted = sum(row["refuted"] for row in rows)
    spread = f"{number(ratios['least'], 2)} to {number(ratios['largest'], 2)}"
    return (
        f"{refuted} of n = {len(rows)} runs with 1.2 times the stated power failed. The stated powers are "
        f"{number(ratios['median'], 3)} times those recorded before (median of {ratios['cases']} cases, {spread}, "
        f"five runs a case)"
    )


LIMITS_S = {"codec": 10.0, "function": 5.0}


def kit_over_the_limits() -> str:
    """How many checks took longer than the limits."""
    rows = rows_of(SECONDS, "seconds")
    over = {form: sum(r["form"] == form and r["seconds"] > most for r in rows) for form, most in LIMITS_S.items()}
    of = {form: sum(r["form"] == form for r in rows) for form in over}
    passed = sum(bool(r["ok"]) for r in rows)
    return (
        f"{over['codec']} of {of['codec']} codecs and {over['function']} of {of['function']} functions took longer. "
        f"{passed} of the {len(rows)} checks ended as `ok`; the others are INCONCLUSIVE."
    )


def kit_seconds_table() -> str:
    """Processor seconds of the standard check of codecs and functions: median and largest."""
    cells = []
    for form in LIMITS_S:
        of = sorted((row for row in rows_of(SECONDS, "seconds") if row["form"] == form), key=lambda row: row["seconds"])
        middle, slowest = number(of[len(of) // 2]["seconds"], 3), of[-1]
        cells.append([form, str(len(of)), middle, f"{number(slowest['seconds'], 3)}, {code(slowest['operator'])}"])
    return with_provenance(SECONDS, table(["form", "n", "median, s", "slowest, s"], cells))
