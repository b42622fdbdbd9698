"""Recorded speeds as tables: first messages, schedules, exchanges, checks, long vectors, and the runs themselves."""

from __future__ import annotations

from markdown_text import code, number, table
from records import DATA, STEPS, Record, network, normalised, provenance, rows_of, with_provenance

FIRST, HOOK, SHOTS, CHECKS, LARGE, THEORY, LIMITS, RUNS = (
    f"{name}.jsonl"
    for name in (
        "first_message",
        "hook_benchmark",
        "two_shots_benchmark",
        "conformance_seconds",
        "large_vectors",
        "theory_benchmark",
        "limits_benchmark",
        "benchmark_runs",
    )
)
THEIRS = {
    "import": ("`import bounds`", "`import sympy`"),
    "neg_log2_cap against betainc": ("`neg_log2_cap`", "`scipy.special.betainc`"),
}
NOTHING = "Not recorded yet."


def first_message_table() -> str:
    """Processor seconds until the first message of a fresh process is decoded, by what is compiled beforehand."""
    rows = _recorded(FIRST, "state")
    lines = []
    for state in dict.fromkeys(row["state"] for row in rows):
        of = sorted((row for row in rows if row["state"] == state), key=lambda row: row["message_cpu_s"])
        met = sum(row["meets_goal"] for row in of)
        middle, last = of[len(of) // 2]["message_cpu_s"], of[-1]
        slowest = f"{number(last['message_cpu_s'], 3)}, {code(last['operator'])}"
        lines.append([state, number(last["goal_s"]), f"{met} of {len(of)}", number(middle, 3), slowest])
    header = ["compiled code", "goal, s", "within it", "median, s", "slowest, s"]
    return _shown(FIRST, header, lines)


def bookkeeping_table() -> str:
    """Steps of 1 ms with a schedule that adapts, over the same with tau = 8 fixed."""
    rows = [row for row in _recorded(STEPS, "benchmark") if row["benchmark"] == "bookkeeping"]
    lines = [
        [
            str(row["processes"]),
            str(row["d"]),
            network(row),
            row["method"],
            number(1e3 * row["median_s_per_step"], 4),
            _ratio(row),
        ]
        for row in rows
    ]
    return _shown(STEPS, ["processes", "d", "network", "schedule", "a step, ms", "time over a fixed tau's"], lines)


def hook_table() -> str:
    """One backward pass with its exchange beside that of plain all-reduce."""
    lines = [
        [
            str(row["processes"]),
            str(row["d"]),
            network(row),
            code(row["method"]),
            number(1e3 * row["median_s"], 3),
            *(number(1e3 * row[end], 3) if end in row else "" for end in ("encode_s", "decode_s")),
            _ratio(row),
        ]
        for row in _recorded(HOOK, "method")
    ]
    header = ["processes", "d", "network", "method", "a pass, ms", "encode, ms", "decode, ms", "time over torch's"]
    return _shown(HOOK, header, lines)


def two_shots_table() -> str:
    """An averaging and a backward pass in two shots beside plain all-reduce."""
    lines = [
        [
            row["benchmark"] + (", errors reported" if row.get("errors") else ""),
            "plain all-reduce" if row["method"] == "torch" else row["method"],
            number(1e3 * row["median_s"], 3),
            number(row["bits_per_coordinate"], 3),
            _ratio(row, "speed_up", 3),
        ]
        for row in _recorded(SHOTS, "speed_up")
        if row["method"] != "whole"
    ]
    return _shown(SHOTS, ["what", "method", "median, ms", "bits per coordinate", "times faster"], lines)


def checks_table() -> str:
    """Seconds of the standard check: the median and the slowest operators."""
    codecs = [row for row in _recorded(CHECKS, "seconds") if row.get("form", "codec") == "codec"]
    rows = sorted(codecs, key=lambda row: -row["seconds"])
    if not rows:
        return NOTHING
    held = sum(row["ok"] for row in rows)
    lines = [[f"median of {len(rows)}, {held} of which hold", number(rows[len(rows) // 2]["seconds"], 3)]]
    lines += [[code(row["operator"]), number(row["seconds"], 3)] for row in rows[:3]]
    return _shown(CHECKS, ["operator", "seconds of a check"], lines)


def large_table() -> str:
    """A vector of very many coordinates, or why it was not sent."""
    lines = [
        [
            code(normalised(row["operator"])[1]),
            str(row["d"]),
            *(number(row[key], 3) if key in row else "" for key in ("encode_cpu_s", "decode_cpu_s", "peak_GiB")),
            row.get("not_run", ""),
        ]
        for row in _recorded(LARGE, "operator")
    ]
    return _shown(LARGE, ["operator", "d", "encode, s", "decode, s", "memory, GiB", "not run"], lines)


def theory_table() -> str:
    """What of the theory has a peer: its import, and the probability of a cap."""
    rows = [*_recorded(THEORY, "ratio"), *_recorded(LIMITS, "ratio")]
    lines = [[*THEIRS[row["what"]], _ratio(row, digits=3)] for row in rows]
    shown = _shown(THEORY, ["this", "beside", "time over the other's"], lines)
    return f"{shown}\n{provenance(LIMITS)}\n" if lines else shown


def runs_table() -> str:
    """The last run of every benchmark."""
    last = {row["benchmark"]: row for row in _recorded(RUNS, "benchmark")}
    lines = [
        [
            name,
            code(f"python docs/measure.py {row['command']}"),
            code(row["record"]),
            str(row["commit"]),
            number(row["seconds"]),
        ]
        for name, row in last.items()
    ]
    return table(["benchmark", "command", "record", "commit", "seconds"], lines) or NOTHING


def _recorded(name: str, key: str) -> list[Record]:
    return rows_of(name, key) if (DATA / name).exists() else []


def _shown(name: str, header: list[str], lines: list[list[str]]) -> str:
    return with_provenance(name, table(header, lines)) if lines else NOTHING


def _ratio(row: Record, key: str = "ratio", digits: int = 4) -> str:
    ends = [number(end, digits) for end in row.get("interval", ())]
    return number(row[key], digits) + (f" ({ends[0]} to {ends[1]})" if ends else "")
