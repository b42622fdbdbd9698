"""Recorded measurements (docs/data) as tables.  Every table says at which commit and on which machine it was taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from markdown_text import code, escape, number, table
from reproduced import script

from operators import parse, specification
from ratedist.interfaces.exit_status import STATUSES

DATA = Path(__file__).parent.parent / "data"
Record = dict[str, Any]
Column = Callable[[Record], str]
COMPARISONS = "quick_comparisons.jsonl"
RATES = (0.6, 1.0, 2.0, 4.0)  # bits per coordinate shown of those recorded
NOTHING = "Not recorded yet."


# -- what all tables share --------------------------------------------------------------------------------------
@lru_cache
def lines_of(name: str) -> tuple[Record, ...]:
    """The records of one file; none if it does not exist."""
    path = DATA / name
    return tuple(json.loads(line) for line in path.read_text().splitlines()) if path.exists() else ()


def rows_of(name: str, key: str) -> list[Record]:
    """The records of one file that have the key."""
    return [row for row in lines_of(name) if key in row]


def provenance(name: str) -> str:
    """Where the numbers of a file come from, from its first record with a commit."""
    head = next((row for row in lines_of(name) if "commit" in row), {})
    parts = [f"`docs/data/{name}`"]
    parts += [f"{key} {head[key]}" for key in ("commit", "machine", "cpus", "torch", "threads") if key in head]
    return f"Record: {', '.join(parts)}."


def with_provenance(name: str, text: str) -> str:
    """A table and where it comes from."""
    return f"{text}\n{provenance(name)}\n" if text else NOTHING


def shown(name: str, rows: Iterable[Record], columns: Mapping[str, Column]) -> str:
    """A table of records of one file: a heading and what stands below it in each row; then where it comes from."""
    return with_provenance(name, table(list(columns), [[cell(row) for cell in columns.values()] for row in rows]))


def text(key: str) -> Column:
    """A value as it is; nothing where there is none."""
    return lambda row: str(row.get(key, ""))


def named(key: str) -> Column:
    """A name in the font of code."""
    return lambda row: code(row[key])


def value(key: str, digits: int = 4, scale: float = 1) -> Column:
    """A number; nothing where there is none."""
    return lambda row: number(scale * row[key], digits) if key in row else ""


def over(key: str, interval: str = "interval", digits: int = 3, unit: str = "") -> Column:
    """A ratio, with its interval where one was recorded."""

    def cell(row: Record) -> str:
        ends = [number(end, digits) for end in row.get(interval, ())]
        return number(row[key], digits) + unit + (f" ({ends[0]} to {ends[1]})" if ends else "")

    return cell


def network(row: Record) -> str:
    """Return the rate of the links between processes."""
    return "no limit" if row["mbit_per_s"] is None else f"{row['mbit_per_s']:g} Mbit/s"


PLACE: dict[str, Column] = {"processes": text("processes"), "d": text("d"), "network": network}


# -- operators --------------------------------------------------------------------------------------------------
def measured(key: str) -> Column:
    """A measured number, or that there is none."""
    return lambda row: "none" if row[key] is None else number(row[key])


MEASURED = {
    "bits per coordinate": measured("bits_per_coordinate"),
    "squared error / norm": measured("nmse"),
    "limit, bits": measured("limit_bits_per_coordinate"),
    "gap, bits": measured("gap_bits_per_coordinate"),
    "encode, MB/s": measured("encode_MB_per_s"),
    "decode, MB/s": measured("decode_MB_per_s"),
}
OPERATORS = "operators_benchmark.jsonl"


def operator_rows(name: str) -> str:
    """What was measured of one operator; empty if nothing was."""
    rows = [row for row in rows_of(OPERATORS, "operator") if normalised(row["operator"])[0] == name]
    first: dict[str, Column] = {"specification": _specification, "d": lambda row: _power(row["d"])}
    return shown(OPERATORS, rows, first | MEASURED) if rows else ""


def operators_table(d: int) -> str:
    """All operators of the benchmark at one dimension."""
    rows = [row for row in rows_of(OPERATORS, "operator") if row["d"] == d]
    first: dict[str, Column] = {
        "specification": lambda row: f"[{code(row['operator'])}](#operator-{normalised(row['operator'])[0]})"
    }
    return shown(OPERATORS, rows, first | MEASURED)


def normalised(specified: str) -> tuple[str, str]:
    """Name and full specification of an operator as a record writes it."""
    operator = parse(specified)
    return operator.name, specification(operator)


def _specification(row: Record) -> str:
    return code(normalised(row["operator"])[1])


def _power(d: int) -> str:
    exponent = len(str(d)) - 1
    return f"$10^{{{exponent}}}$" if d == 10**exponent else str(d)


def looseness(bound: str) -> str:
    """How far the recorded measurements stay from a bound; empty if none was compared with it."""
    found = factors().get(bound, [])
    if not found:
        return ""
    low, high = (number(end(factor for _, factor in found), 3) for end in (min, max))
    spread = f"{low} times" if low == high else f"{low} to {high} times"
    runs = ", ".join(code(preset) for preset in sorted({preset for preset, _ in found}))
    return f"{spread} looser than what was measured, in {len(found)} comparisons ({runs})"


@lru_cache(maxsize=1)
def factors() -> dict[str, list[tuple[str, float]]]:
    """Theorem -> (experiment, looseness) of every decided comparison, from the records of the looseness figure."""
    return script("looseness").factors() if (DATA / COMPARISONS).exists() else {}


# -- comparison with peers --------------------------------------------------------------------------------------
def peers_table() -> str:
    """Speed of the operators beside a plain implementation of what other projects publish."""
    header = ("operator", "d", "bits", "encode, GB/s", "over peer", "decode, GB/s", "over peer")
    columns = (
        named("operator"),
        text("d"),
        value("bits_per_coordinate"),
        value("encode_GB_per_s"),
        over("encode_over_peer", "encode_over_peer_interval", unit=" times"),
        value("decode_GB_per_s"),
        over("decode_over_peer", "decode_over_peer_interval", unit=" times"),
        lambda row: f"{number(row['encode_over_floor'], 3)} / {number(row['decode_over_floor'], 3)}",
    )
    rows = [[cell(row) for cell in columns] for row in rows_of("operators_goals.jsonl", "operator")]
    return with_provenance("operators_goals.jsonl", table([*header, "time over memory floor"], rows))


def codec_table() -> str:
    """TCDQ beside the library codec, nanoseconds a coordinate."""
    sides = {"TCDQ": "", "EDEN": "eden_", "library": "library_"}
    columns = {"rate asked": value("rate"), "bits": value("bits")}
    columns |= {f"{end}, {who}": value(f"{key}{end}_ns") for end in ENDS for who, key in sides.items()}
    columns |= {f"{end}, TCDQ over EDEN": over(f"{end}_over_eden", f"{end}_over_eden_interval") for end in ENDS}
    return shown("tcdq_speed.jsonl", rows_of("tcdq_speed.jsonl", "rate"), columns)


ENDS = ("encode", "decode")


def trellis_table() -> str:
    """Gap and speed of TCDQ by number of states."""
    columns: dict[str, Column] = {
        "omega": lambda row: f"1/{1 / row['omega']:.0f}" if row["omega"] < 1 else "1",
        "states": text("states"),
        "gap, bits": lambda row: f"{row['gap']:.4f} ± {row['standard_error']:.4f}",
        "at d = 10^4": lambda row: f"{row['gap_at_10000']:.4f} ± {row['standard_error_at_10000']:.4f}",
        "encode, GB/s": value("encode_MB_per_s", scale=1e-3),
        "time over 8 states": over("encode_over_8_states", "encode_over_8_states_interval"),
        "decode, GB/s": value("decode_MB_per_s", scale=1e-3),
    }
    return shown("tcdq_gaps.jsonl", rows_of("tcdq_gaps.jsonl", "states"), columns)


AVERAGING = {"whole": "PeriodicAveraging", "identity": "with operator=Identity()", "torch": "torch's averager"}
STEPS, PROBES = "loops_benchmark.jsonl", "probes_benchmark.jsonl"
LOOPS = {
    "loop": "PeriodicAveraging, over a plain loop with torch's averager",
    "probe": 'measurements and probes as of schedule="auto", over a fixed tau',
}


def averaging_table() -> str:
    """One averaging beside torch's own averager."""
    columns = {
        **PLACE,
        "method": lambda row: AVERAGING.get(row["method"], code(row["method"])),
        "median, ms": value("median_s", 3, 1e3),
        "time over torch's": over("ratio"),
        "bytes a rank": text("payload_bytes_per_rank"),
    }
    return shown("averaging_benchmark.jsonl", rows_of("averaging_benchmark.jsonl", "median_s"), columns)


def loop_table() -> str:
    """A local step with its share of the averagings, beside a plainer loop."""
    rows = [row for name in (STEPS, PROBES) for row in rows_of(name, "median_s_per_step") if row["benchmark"] in LOOPS]
    columns = {
        **PLACE,
        "loop": lambda row: LOOPS[row["benchmark"]],
        "a step, ms": value("median_s_per_step", 3, 1e3),
        "time over the other's": over("ratio"),
    }
    return f"{shown(STEPS, rows, columns)}\n{provenance(PROBES)}\n"


def bookkeeping_table() -> str:
    """Steps of 1 ms with a schedule that adapts, over the same with tau = 8 fixed."""
    rows = [row for row in rows_of(STEPS, "benchmark") if row["benchmark"] == "bookkeeping"]
    columns = {
        **PLACE,
        "schedule": text("method"),
        "a step, ms": value("median_s_per_step", scale=1e3),
        "time over a fixed tau's": over("ratio", digits=4),
    }
    return shown(STEPS, rows, columns)


def hook_table() -> str:
    """One backward pass with its exchange beside that of plain all-reduce."""
    columns = {
        **PLACE,
        "method": named("method"),
        "a pass, ms": value("median_s", 3, 1e3),
        **{f"{end}, ms": value(f"{end}_s", 3, 1e3) for end in ENDS},
        "time over torch's": over("ratio", digits=4),
    }
    return shown("hook_benchmark.jsonl", rows_of("hook_benchmark.jsonl", "method"), columns)


def two_shots_table() -> str:
    """An averaging and a backward pass in two shots beside plain all-reduce."""
    columns: dict[str, Column] = {
        "what": lambda row: row["benchmark"] + (", errors reported" if row.get("errors") else ""),
        "method": lambda row: "plain all-reduce" if row["method"] == "torch" else row["method"],
        "median, ms": value("median_s", 3, 1e3),
        "bits per coordinate": value("bits_per_coordinate", 3),
        "times faster": over("speed_up"),
    }
    rows = [row for row in rows_of("two_shots_benchmark.jsonl", "speed_up") if row["method"] != "whole"]
    return shown("two_shots_benchmark.jsonl", rows, columns)


def first_message_table() -> str:
    """Processor seconds until the first message of a fresh process is decoded, by what is compiled beforehand."""
    rows = sorted(rows_of("first_message.jsonl", "state"), key=lambda row: row["message_cpu_s"])
    states = {row["state"]: [] for row in rows_of("first_message.jsonl", "state")}
    for row in rows:
        states[row["state"]].append(row)
    columns: dict[str, Callable[[list[Record]], str]] = {
        "compiled code": lambda of: of[0]["state"],
        "goal, s": lambda of: number(of[0]["goal_s"]),
        "within it": lambda of: f"{sum(row['meets_goal'] for row in of)} of {len(of)}",
        "median, s": lambda of: number(of[len(of) // 2]["message_cpu_s"], 3),
        "slowest, s": lambda of: f"{number(of[-1]['message_cpu_s'], 3)}, {code(of[-1]['operator'])}",
    }
    lines = [[cell(of) for cell in columns.values()] for of in states.values()]
    return with_provenance("first_message.jsonl", table(list(columns), lines))


def checks_table() -> str:
    """Seconds of the standard check: the median and the slowest operators."""
    codecs = [row for row in rows_of("conformance_seconds.jsonl", "seconds") if row.get("form", "codec") == "codec"]
    rows = sorted(codecs, key=lambda row: -row["seconds"])
    lines = [[code(row["operator"]), number(row["seconds"], 3)] for row in rows[:3]]
    if rows:
        held = sum(row["ok"] for row in rows)
        middle = number(rows[len(rows) // 2]["seconds"], 3)
        lines.insert(0, [f"median of {len(rows)}, {held} of which hold", middle])
    return with_provenance("conformance_seconds.jsonl", table(["operator", "seconds of a check"], lines))


def large_table() -> str:
    """A vector of very many coordinates, or why it was not sent."""
    columns = {
        "operator": _specification,
        "d": text("d"),
        "encode, s": value("encode_cpu_s", 3),
        "decode, s": value("decode_cpu_s", 3),
        "memory, GiB": value("peak_GiB", 3),
        "not run": text("not_run"),
    }
    return shown("large_vectors.jsonl", rows_of("large_vectors.jsonl", "operator"), columns)


THEIRS = {
    "import": ("`import bounds`", "`import sympy`"),
    "neg_log2_cap against betainc": ("`neg_log2_cap`", "`scipy.special.betainc`"),
}


def theory_table() -> str:
    """What of the theory has a peer: its import, and the probability of a cap."""
    names = ("theory_benchmark.jsonl", "limits_benchmark.jsonl")
    columns: dict[str, Column] = {
        "this": lambda row: THEIRS[row["what"]][0],
        "beside": lambda row: THEIRS[row["what"]][1],
        "time over the other's": over("ratio"),
    }
    rows = [row for name in names for row in rows_of(name, "ratio")]
    return f"{shown(names[0], rows, columns)}\n{provenance(names[1])}\n"


def http_table() -> str:
    """The calculator over HTTP beside an empty endpoint."""
    columns = {
        "request": text("what"),
        "requests/s": text("requests_per_s"),
        "median, ms": value("median_ms"),
        "99 %, ms": value("p99_ms"),
        "rate over the empty one's": over("share_of_empty"),
    }
    return shown("http_benchmark.jsonl", rows_of("http_benchmark.jsonl", "requests_per_s"), columns)


def runs_table() -> str:
    """The last run of every benchmark."""
    last = {row["benchmark"]: row for row in rows_of("benchmark_runs.jsonl", "benchmark")}
    columns: dict[str, Column] = {
        "benchmark": text("benchmark"),
        "command": lambda row: code(f"python docs/measure.py {row['command']}"),
        "record": named("record"),
        "commit": text("commit"),
        "seconds": value("seconds"),
    }
    return table(list(columns), [[cell(row) for cell in columns.values()] for row in last.values()]) or NOTHING


RATE_DISTORTION = "rate_distortion.jsonl"


def rate_table(source: str) -> str:
    """Bits above the limit of every rival at several rates, on one kind of vector."""
    found = [row for row in rows_of(RATE_DISTORTION, "gap") if row["source"] == source and row["rate"] in RATES]
    rivals: dict[tuple[str, str], dict[float, str]] = {}
    for row in found:
        rivals.setdefault((row["operator"], row["class"]), {})[row["rate"]] = f"{row['gap']:.3f}"
    lines = [
        [escape(name), kind, *(gaps.get(rate, "not reached") for rate in RATES)]
        for (name, kind), gaps in rivals.items()
    ]
    return with_provenance(RATE_DISTORTION, table(["operator", "class", *(f"{rate:g} bits" for rate in RATES)], lines))


# -- verdicts ---------------------------------------------------------------------------------------------------
MUTATIONS = "mutations.jsonl"


def mutation_table(caught: bool) -> str:
    """What is wrong on purpose and noticed, or not; with the least factor of the same number that is noticed."""
    columns: dict[str, Column] = {
        "wrong on purpose": lambda row: escape(row["name"]),
        "put into": lambda row: escape(row["where"]),
        "noticed from": lambda row: "" if row["least"] is None else f"x {row['least']:.3g}",
    }
    if caught:
        columns["rows that are VIOLATED"] = lambda row: escape("; ".join(row["caught_by"]))
    else:
        columns["why it is not noticed"] = lambda row: escape(row["reason"])
    return shown(
        MUTATIONS, [row for row in rows_of(MUTATIONS, "caught_by") if bool(row["caught_by"]) is caught], columns
    )


def mutation_score() -> str:
    """The share that is noticed, in words."""
    found = rows_of(MUTATIONS, "caught_by")
    caught = [row for row in found if row["caught_by"]]
    return f"{len(caught)} of {len(found)}, {sum(row['decides'] for row in caught)} of them by rows that decide"


def coverage_words() -> str:
    """The least shares, over all laws, in which our ends and Student's interval hold the mean."""
    found = rows_of("coverage.jsonl", "law")
    ours = min(row[end] for row in found for end in ("lower", "upper"))
    student = min(row["student"] for row in found)
    shares = [f"{100 * share:.1f} %" for share in (ours, student)]
    return "Over all laws each of our ends holds it in {} or more, Student's interval in {} or more.".format(*shares)


def coverage_table() -> str:
    """How often the ends of intervals hold the mean, law by law, and how often Student's interval does."""
    ends = {"lower end": "lower", "upper end": "upper", "Student, both ends": "student"}
    columns: dict[str, Column] = {"law": lambda row: escape(row["law"]), "n": text("n")}
    columns |= {words: lambda row, key=key: f"{row[key]:.3f}" for words, key in ends.items()}  # type: ignore[misc]
    return shown("coverage.jsonl", rows_of("coverage.jsonl", "law"), columns)


def exit_statuses_table() -> str:
    """Every exit status of the command lines with its meaning."""
    return table(("status", "meaning"), [(str(status), meaning) for status, meaning in STATUSES.items()])
