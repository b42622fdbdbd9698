"""Run every benchmark of speed, one after the other, into docs/data: one command, which goes on where it was stopped.

    python docs/measure.py benchmarks/all.py           # what has not been run at this commit
    python docs/measure.py benchmarks/all.py --list    # the commands, how long each takes, and which are done
    python docs/measure.py benchmarks/all.py --only averaging hook --again

Each benchmark measures in turns with its peers and gives ratios with intervals, or processor seconds of one thread
where nothing is to be compared; its own first lines say what.  A record takes the place of the one before when its
command has ended well, and a line is added to ``benchmark_runs.jsonl``: command, commit, load and seconds.  What that
file has of a commit since which neither the packages nor the script, with what it imports of its folder, have changed
is not run again.  Take a quiet machine; nothing here runs beside another.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "data"
MEASURE = ROOT / "docs" / "measure.py"
RUNS = "benchmark_runs.jsonl"
PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")


@dataclass(frozen=True)
class Benchmark:
    """A command whose output is a record.

    Parameters
    ----------
    name : str
        What ``--only`` calls it.
    record : str
        File in docs/data.
    command : str
        Script in docs, and its options.
    minutes : float, minutes
        On two quiet cores, roughly.
    """

    name: str
    record: str
    command: str
    minutes: float


BENCHMARKS = (
    Benchmark("first-message", "first_message.jsonl", "benchmarks/first_message.py", 6),
    Benchmark("operators", "operators_benchmark.jsonl", "benchmarks/operators.py", 4),
    Benchmark("peers", "operators_goals.jsonl", "benchmarks/operators.py --peers --d 10000000", 3),
    Benchmark("tcdq", "tcdq_speed.jsonl", "benchmarks/tcdq.py --speed 4000000", 1),
    Benchmark("gaps", "tcdq_gaps.jsonl", "benchmarks/tcdq.py --gaps 1000000", 1),
    Benchmark(
        "averaging",
        "averaging_benchmark.jsonl",
        "benchmarks/averaging.py --only averaging --hidden 64 256 700 2170 --repeats 100 --scheduling realtime",
        4,
    ),
    Benchmark(
        "loops",
        "loops_benchmark.jsonl",
        "benchmarks/averaging.py --only loop bookkeeping --repeats 100 --scheduling realtime",
        6,
    ),
    Benchmark(
        "probes",
        "probes_benchmark.jsonl",
        "benchmarks/averaging.py --only probe --hidden 64 256 --repeats 100 --scheduling realtime",
        2,
    ),
    Benchmark("hook", "hook_benchmark.jsonl", "benchmarks/hook.py --seconds .5 --scheduling realtime", 7),
    Benchmark("two-shots", "two_shots_benchmark.jsonl", "benchmarks/two_shots.py", 2),
    Benchmark("large-vectors", "large_vectors.jsonl", "benchmarks/large_vectors.py --most_GiB 20", 30),
    Benchmark("conformance", "conformance_seconds.jsonl", "benchmarks/conformance.py", 2.5),
    Benchmark("http", "http_benchmark.jsonl", "benchmarks/http.py", 2),
    Benchmark("theory", "theory_benchmark.jsonl", "benchmarks/theory.py import", 0.5),
    Benchmark("limits", "limits_benchmark.jsonl", "benchmarks/theory.py cap", 0.1),
)


def git(*arguments: str) -> str:
    """What git says of this tree; nothing outside a repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def runs() -> list[dict[str, Any]]:
    """The runs so far, oldest first."""
    log = DATA / RUNS
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def scripts(path: Path) -> set[Path]:
    """A script and what it imports of its own folder, directly or not."""
    waiting, read = {path}, set()
    while waiting:
        script = waiting.pop()
        read.add(script)
        for node in ast.walk(ast.parse(script.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            neighbours = {script.with_name(f"{name}.py") for name in names if name not in PACKAGES}
            waiting |= {neighbour for neighbour in neighbours if neighbour.exists()} - read
    return read


def is_current(run: dict[str, Any]) -> bool:
    """Whether neither the packages nor the script have changed since a run."""
    paths = [*PACKAGES, *map(str, scripts(ROOT / "docs" / shlex.split(run["command"])[0]))]
    changed = subprocess.run(["git", "diff", "--quiet", str(run["commit"]), "--", *paths], cwd=ROOT, check=False)
    return changed.returncode == 0


def done(benchmark: Benchmark) -> bool:
    """Whether the record is of this commit, by this command."""
    same = [run for run in runs() if (run["benchmark"], run["command"]) == (benchmark.name, benchmark.command)]
    return bool(same) and (DATA / benchmark.record).exists() and is_current(same[-1])


def run(benchmark: Benchmark) -> dict[str, Any]:
    """Run one, let its record take the place of the one before, and return the line on its run."""
    script, *options = shlex.split(benchmark.command)
    partial, load, began = DATA / f"{benchmark.record}.part", os.getloadavg(), time.monotonic()
    try:
        with partial.open("w") as output:
            command = [sys.executable, str(MEASURE), str(ROOT / "docs" / script), *options]
            subprocess.run(command, cwd=ROOT, stdout=output, check=True)
        partial.replace(DATA / benchmark.record)
    finally:
        partial.unlink(missing_ok=True)
    line = {
        "benchmark": benchmark.name,
        "command": benchmark.command,
        "record": benchmark.record,
        "commit": git("rev-parse", "--short", "HEAD") or None,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(average, 2) for average in load],
        "seconds": round(time.monotonic() - began, 1),
    }
    with (DATA / RUNS).open("a") as log:
        log.write(json.dumps(line) + "\n")
    return line


def main(only: tuple[str, ...] = (), again: bool = False, list: bool = False) -> Iterator[dict[str, Any]]:
    """Run those of some names, or all that are not done; ``again`` also these."""
    wanted = [benchmark for benchmark in BENCHMARKS if not only or benchmark.name in only]
    waiting = [benchmark for benchmark in wanted if again or not done(benchmark)]
    yield {"to_run": len(waiting), "of": len(wanted), "minutes": sum(b.minutes for b in waiting)}
    for benchmark in wanted if list else waiting:
        yield {**asdict(benchmark), "is_done": benchmark not in waiting} if list else run(benchmark)
