"""Recorded measurements (docs/data) as tables.  Every table says at which commit and on which machine it was taken."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from markdown_text import code, escape, number, table
from reproduced import script

from operators import parse, specification
from ratedist.interfaces.exit_status import STATUSES

DATA = Path(__file__).parent.parent / "data"
Record = dict[str, Any]
COMPARISONS = "quick_comparisons.jsonl"
RATES = (0.6, 1.0, 2.0, 4.0)  # bits per coordinate shown of those recorded


@lru_cache
def lines_of(name: str) -> tuple[Record, ...]:
    """The records of one file."""
    return tuple(json.loads(line) for line in (DATA / name).read_text().splitlines())


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
    return f"{text}\n{provenance(name)}\n"


# -- operators --------------------------------------------------------------------------------------------------
MEASURED = {
    "bits per coordinate": "bits_per_coordinate",
    "squared error / norm": "nmse",
    "limit, bits": "limit_bits_per_coordinate",
    "gap, bits": "gap_bits_per_coordinate",
    "encode, MB/s": "encode_MB_per_s",
    "decode, MB/s": "decode_MB_per_s",
}
OPERATORS = "operators_benchmark.jsonl"


def operator_rows(name: str) -> str:
    """What was measured of one operator; empty if nothing was."""
    found = [row for row in rows_of(OPERATORS, "operator") if normalised(row["operator"])[0] == name]
    if not found:
        return ""
    rows = [[code(normalised(row["operator"])[1]), _power(row["d"]), *_measured(row)] for row in found]
    return with_provenance(OPERATORS, table(["specification", "d", *MEASURED], rows))


def operators_table(d: int) -> str:
    """All operators of the benchmark at one dimension."""
    rows = [
        [f"[{code(row['operator'])}](#operator-{normalised(row['operator'])[0]})", *_measured(row)]
        for row in rows_of(OPERATORS, "operator")
        if row["d"] == d
    ]
    return with_provenance(OPERATORS, table(["specification", *MEASURED], rows))


def normalised(text: str) -> tuple[str, str]:
    """Name and full specification of an operator as a record writes it."""
    operator = parse(text)
    return operator.name, specification(operator)


def _measured(row: Record) -> list[str]:
    return [number(row[key]) if row[key] is not None else "none" for key in MEASURED.values()]


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
GOALS = "operators_goals.jsonl"


def peers_table() -> str:
    """Speed of the operators beside a plain implementation of what other projects publish."""
    rows = [
        [
            code(row["operator"]),
            str(row["d"]),
            number(row["bits_per_coordinate"]),
            number(row["encode_GB_per_s"]),
            _over(row, "encode_over_peer", "encode_over_peer_interval", " times"),
            number(row["decode_GB_per_s"]),
            _over(row, "decode_over_peer", "decode_over_peer_interval", " times"),
            f"{number(row['encode_over_floor'], 3)} / {number(row['decode_over_floor'], 3)}",
        ]
        for row in rows_of(GOALS, "operator")
    ]
    header = [
        "operator",
        "d",
        "bits",
        "encode, GB/s",
        "over peer",
        "decode, GB/s",
        "over peer",
        "time over memory floor",
    ]
    return with_provenance(GOALS, table(header, rows))


def _over(row: Record, key: str, interval: str, unit: str = "") -> str:
    """A ratio, with its interval where one was recorded."""
    ends = [number(end, 3) for end in row.get(interval, ())]
    return number(row[key], 3) + unit + (f" ({ends[0]} to {ends[1]})" if ends else "")


def codec_table() -> str:
    """TCDQ beside the library codec, nanoseconds a coordinate."""
    rows = [
        [
            number(row["rate"]),
            number(row["bits"]),
            *(number(row[f"{end}_ns"]) for end in ("encode", "eden_encode", "library_encode")),
            *(number(row[f"{end}_ns"]) for end in ("decode", "eden_decode", "library_decode")),
            *(_over(row, f"{end}_over_eden", f"{end}_over_eden_interval") for end in ("encode", "decode")),
        ]
        for row in rows_of("tcdq_speed.jsonl", "rate")
    ]
    ends = [f"{end}, {who}" for end in ("encode", "decode") for who in ("TCDQ", "EDEN", "library")]
    ends += ["encode, TCDQ over EDEN", "decode, TCDQ over EDEN"]
    return with_provenance("tcdq_speed.jsonl", table(["rate asked", "bits", *ends], rows))


def trellis_table() -> str:
    """Gap and speed of TCDQ by number of states."""
    rows = [
        [
            f"1/{1 / row['omega']:.0f}" if row["omega"] < 1 else "1",
            str(row["states"]),
            f"{row['gap']:.4f} ± {row['standard_error']:.4f}",
            f"{row['gap_at_10000']:.4f} ± {row['standard_error_at_10000']:.4f}",
            number(row["encode_MB_per_s"] / 1000),
            _over(row, "encode_over_8_states", "encode_over_8_states_interval"),
            number(row["decode_MB_per_s"] / 1000),
        ]
        for row in rows_of("tcdq_gaps.jsonl", "states")
    ]
    header = ["omega", "states", "gap, bits", "at d = 10^4", "encode, GB/s", "time over 8 states", "decode, GB/s"]
    return with_provenance("tcdq_gaps.jsonl", table(header, rows))


AVERAGING = {"whole": "PeriodicAveraging", "identity": "with operator=Identity()", "torch": "torch's averager"}
STEPS, PROBES = "loops_benchmark.jsonl", "probes_benchmark.jsonl"
LOOPS = {
    "loop": "PeriodicAveraging, over a plain loop with torch's averager",
    "probe": 'measurements and probes as of schedule="auto", over a fixed tau',
}


def averaging_table() -> str:
    """One averaging beside torch's own averager."""
    rows = [
        [
            str(row["processes"]),
            str(row["d"]),
            network(row),
            AVERAGING.get(row["method"], code(row["method"])),
            number(1e3 * row["median_s"], 3),
            _ratio(row),
            str(row["payload_bytes_per_rank"]),
        ]
        for row in rows_of("averaging_benchmark.jsonl", "median_s")
    ]
    header = ["processes", "d", "network", "method", "median, ms", "time over torch's", "bytes a rank"]
    return with_provenance("averaging_benchmark.jsonl", table(header, rows))


def loop_table() -> str:
    """A local step with its share of the averagings, beside a plainer loop."""
    probes = rows_of(PROBES, "median_s_per_step") if (DATA / PROBES).exists() else []
    rows = [
        [str(row["processes"]), str(row["d"]), network(row), LOOPS[row["benchmark"]], _milliseconds(row), _ratio(row)]
        for row in [*rows_of(STEPS, "median_s_per_step"), *probes]
        if row["benchmark"] in LOOPS
    ]
    header = ["processes", "d", "network", "loop", "a step, ms", "time over the other's"]
    return with_provenance(STEPS, table(header, rows)) + (f"\n{provenance(PROBES)}\n" if probes else "")


def network(row: Record) -> str:
    """Return the rate of the links between processes."""
    return "no limit" if row["mbit_per_s"] is None else f"{row['mbit_per_s']:g} Mbit/s"


def _milliseconds(row: Record) -> str:
    return number(1e3 * row["median_s_per_step"], 3)


def _ratio(row: Record) -> str:
    return f"{number(row['ratio'], 3)} ({number(row['interval'][0], 3)} to {number(row['interval'][1], 3)})"


def http_table() -> str:
    """The calculator over HTTP beside an empty endpoint."""
    rows = [
        [
            row["what"],
            str(row["requests_per_s"]),
            number(row["median_ms"]),
            number(row["p99_ms"]),
            _over(row, "share_of_empty", "interval"),
        ]
        for row in rows_of("http_benchmark.jsonl", "requests_per_s")
    ]
    header = ["request", "requests/s", "median, ms", "99 %, ms", "rate over the empty one's"]
    return with_provenance("http_benchmark.jsonl", table(header, rows))


RATE_DISTORTION = "rate_distortion.jsonl"


def rate_table(source: str) -> str:
    """Bits above the limit of every rival at several rates, on one kind of vector."""
    found = [row for row in rows_of(RATE_DISTORTION, "gap") if row["source"] == source and row["rate"] in RATES]
    rivals = list(dict.fromkeys((row["operator"], row["class"]) for row in found))
    rows = [[escape(name), kind, *_gaps(found, name, kind)] for name, kind in rivals]
    return with_provenance(RATE_DISTORTION, table(["operator", "class", *(f"{rate:g} bits" for rate in RATES)], rows))


def _gaps(found: Iterable[Record], name: str, kind: str) -> list[str]:
    gaps = {row["rate"]: row["gap"] for row in found if (row["operator"], row["class"]) == (name, kind)}
    return [f"{gaps[rate]:.3f}" if rate in gaps else "not reached" for rate in RATES]


MUTATIONS = "mutations.jsonl"


def mutation_table(caught: bool) -> str:
    """What is wrong on purpose and noticed, or not; with the least factor of the same number that is noticed."""
    found = [row for row in rows_of(MUTATIONS, "caught_by") if bool(row["caught_by"]) is caught]
    if caught:
        head = ["wrong on purpose", "put into", "noticed from", "rows that are VIOLATED"]
        rows = [[row["name"], row["where"], _least(row), "; ".join(row["caught_by"])] for row in found]
    else:
        head = ["wrong on purpose", "put into", "noticed from", "why it is not noticed"]
        rows = [[row["name"], row["where"], _least(row), row["reason"]] for row in found]
    return with_provenance(MUTATIONS, table(head, [[escape(cell) for cell in row] for row in rows]))


def mutation_score() -> str:
    """The share that is noticed, in words."""
    found = rows_of(MUTATIONS, "caught_by")
    caught = [row for row in found if row["caught_by"]]
    return f"{len(caught)} of {len(found)}, {sum(row['decides'] for row in caught)} of them by rows that decide"


def _least(row: Record) -> str:
    """The factor, if the wrong thing is one."""
    return "" if row["least"] is None else f"x {row['least']:.3g}"


COVERAGE = "coverage.jsonl"


def coverage_table() -> str:
    """How often the ends of intervals hold the mean, law by law, and how often Student's interval does."""
    rows = [
        [escape(row["law"]), str(row["n"]), *(f"{row[name]:.3f}" for name in ("lower", "upper", "student"))]
        for row in rows_of(COVERAGE, "law")
    ]
    return with_provenance(COVERAGE, table(["law", "n", "lower end", "upper end", "Student, both ends"], rows))


# -- exit statuses ------------------------------------------------------------------------------------------------
def exit_statuses_table() -> str:
    """Every exit status of the command lines with its meaning."""
    return table(("status", "meaning"), [(str(status), meaning) for status, meaning in STATUSES.items()])
