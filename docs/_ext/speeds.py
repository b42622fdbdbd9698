"""Recorded speeds as tables: the first message, bookkeeping of schedules, the hook, and the runs of the benchmarks."""

from __future__ import annotations

from markdown_text import code, number, table
from records import DATA, Record, rows_of, with_provenance

FIRST, AVERAGING, HOOK, RUNS = (
    f"{name}.jsonl" for name in ("first_message", "averaging_benchmark", "hook_benchmark", "benchmark_runs")
)
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
    rows = [row for row in _recorded(AVERAGING, "benchmark") if row["benchmark"] == "bookkeeping"]
    lines = [
        [str(row["processes"]), str(row["d"]), row["method"], number(1e3 * row["median_s_per_step"], 4), _ratio(row)]
        for row in rows
    ]
    return _shown(AVERAGING, ["processes", "d", "schedule", "a step, ms", "time over a fixed tau's"], lines)


def hook_table() -> str:
    """One backward pass with its exchange beside that of plain all-reduce."""
    lines = [
        [
            str(row["processes"]),
            str(row["d"]),
            "no limit" if row["mbit_per_s"] is None else f"{row['mbit_per_s']:g} Mbit/s",
            code(row["method"]),
            number(1e3 * row["median_s"], 3),
            *(number(1e3 * row[end], 3) if end in row else "" for end in ("encode_s", "decode_s")),
            _ratio(row),
        ]
        for row in _recorded(HOOK, "method")
    ]
    header = ["processes", "d", "network", "method", "a pass, ms", "encode, ms", "decode, ms", "time over torch's"]
    return _shown(HOOK, header, lines)


def runs_table() -> str:
    """The last run of every benchmark."""
    last = {row["benchmark"]: row for row in _recorded(RUNS, "benchmark")}
    lines = [
        [name, code(f"python docs/{row['command']}"), code(row["record"]), str(row["commit"]), number(row["seconds"])]
        for name, row in last.items()
    ]
    return table(["benchmark", "command", "record", "commit", "seconds"], lines) or NOTHING


def _recorded(name: str, key: str) -> list[Record]:
    return rows_of(name, key) if (DATA / name).exists() else []


def _shown(name: str, header: list[str], lines: list[list[str]]) -> str:
    return with_provenance(name, table(header, lines)) if lines else NOTHING


def _ratio(row: Record) -> str:
    return f"{number(row['ratio'], 4)} ({number(row['interval'][0], 4)} to {number(row['interval'][1], 4)})"
