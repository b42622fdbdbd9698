"""The recorded judgements of published implementations as a table."""

from __future__ import annotations

from typing import Any

from markdown_text import code, escape, number, table
from records import lines_of

RECORD = "published_implementations.jsonl"
Row = dict[str, Any]


def published_table() -> str:
    """One row for each implementation."""
    rows = [
        [
            f"{escape(row['name'])} ({_version(row)})",
            f"{escape(row['says'])}. Judged as: {escape(row['judged'])}",
            f"**{_verdict(row)}**: {_finding(row)}. Without the kit: {'; '.join(map(_number, row['computed']))}",
        ]
        for row in lines_of(RECORD)
    ]
    return table(["implementation", "claimed", "verdict and finding"], rows)


def published_summary() -> str:
    """How many were judged and accused, and with what."""
    rows = lines_of(RECORD)
    accused = sum(bool(row["fail"]) for row in rows)
    seeds = ", ".join(sorted({str(row["seed"]) for row in rows}))
    versions = [
        f"{name} {', '.join(sorted({row[name] for row in rows if row[name]}))}" for name in ("numpy", "torch", "jax")
    ]
    return (
        f"{len(rows)} judgements on code of {len({row['package'] for row in rows})} projects: {accused} accused, "
        f"{sum(row['ok'] for row in rows)} not accused, {sum(not row['ok'] and not row['fail'] for row in rows)} left "
        f"open. Seed {seeds}, {code(rows[0]['budget'])}, {', '.join(versions)}."
    )


def _version(row: Row) -> str:
    """Package, version (of a clone the beginning of the file's digest), licence."""
    which = row["version"] or f"file {row['sha256'][:10]}"
    return f"{escape(row['package'])} {which}, {row['license']}"


def _verdict(row: Row) -> str:
    if row["fail"]:
        return f"accused by {', '.join(row['fail'])}"
    return "not accused" if row["ok"] else f"left open by {', '.join(row['inconclusive'])}"


def _finding(row: Row) -> str:
    """The sentence; of a pass also what would have been found."""
    said = [escape(row["finding"])] if row["finding"] else []
    power = row["power"]
    if not row["fail"]:
        parts = []
        if "along_x" in power:
            parts.append(f"a bias along x of {number(power['along_x'], 2)} times the norm")
        if "excess" in power:
            parts.append(f"an error {number(100 * power['excess'], 2)} % above the constant")
        said.append(f"{' or '.join(parts)} would have been found" if parts else "the draws did not suffice")
    return "; ".join(said)


def _number(computed: Row) -> str:
    """One number with its interval, the claimed one and how it was found."""
    interval = ""
    if computed["interval"] and computed["interval"][0] != computed["interval"][1]:
        low, high = (number(end) for end in computed["interval"])
        interval = f" ({low} to {high})"
    how = computed["method"] + (f", n = {computed['n']}" if computed["n"] > 1 else "")
    value, claimed = (number(computed[which]) for which in ("value", "claimed"))
    return f"{escape(computed['quantity'])} = **{value}**{interval}, claimed {claimed} ({how})"
