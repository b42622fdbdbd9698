"""How often does the conformance kit accuse an honest operator?  Count the alarms of its statistical laws.

Run i checks honest operator i mod n with seed ``--seed`` + i in the kit's quick profile, each run with the
false-alarm budget 1e-6.  One JSON line a run is appended to ``--out``; runs already there are not repeated, so
an interrupted study goes on where it stopped; each line names its operator and commit, since the catalogue may
have grown meanwhile.  ``--summary`` writes the totals as JSON.

    nice python docs/studies/false_alarms.py --runs 10000 --out false_alarms.jsonl --summary docs/data/false_alarms.json
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from scipy.stats import binom

from bounds.claims import NoClaim
from operators import Operator, all_operators
from operators.laws import Budget, check
from operators.laws.suite import LAWS

BUDGET = Budget.quick().untimed()  # so that a run depends on its seed alone
STATISTICAL = tuple(law.name for law in LAWS if law.statistical and law.needs != "aggregate")
QUANTILE = 0.999


@cache
def honest() -> list[Operator]:
    """Every example of the catalogue that is randomised and claims a constant."""
    examples = (op for cls in all_operators().values() for op in cls.examples())
    return [op for op in examples if op.randomness != "none" and not isinstance(op.claim(65), NoClaim)]


@cache
def commit() -> str:
    """The commit that is checked out, or an empty string outside a clone."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip()


def one(run: int, seed: int) -> dict[str, object]:
    """The record of one run: number, operator, names of the laws that raised an alarm, seconds, commit."""
    subjects = honest()
    op = subjects[run % len(subjects)]
    started = time.monotonic()
    report = check(op, budget=BUDGET, seed=seed + run, laws=STATISTICAL)
    return {
        "run": run,
        "operator": repr(op),
        "alarms": [verdict.law for verdict in report.failures],
        "seconds": round(time.monotonic() - started, 3),
        "commit": commit(),
    }


def study(runs: Iterable[int], seed: int, processes: int) -> Iterator[dict[str, object]]:
    """The records of the runs, as they finish."""
    if processes == 1:
        yield from (one(run, seed) for run in runs)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(partial(one, seed=seed), runs, chunksize=4)


def summary(records: list[dict[str, object]], seed: int) -> dict[str, object]:
    """Totals, and the most alarms that a correct kit may have raised at the quantile."""
    allowed = int(binom.ppf(QUANTILE, len(records), BUDGET.false_alarm))
    seconds = sorted(float(str(r["seconds"])) for r in records)
    return {
        "command": f"nice python docs/studies/false_alarms.py --runs {max(int(str(r['run'])) for r in records) + 1} "
        f"--seed {seed} --out false_alarms.jsonl --summary docs/data/false_alarms.json",
        "runs": len(records),
        "level_per_run": BUDGET.false_alarm,
        "laws": list(STATISTICAL),
        "alarms": sum(bool(r["alarms"]) for r in records),
        "allowed_at_99.9_percent": allowed,
        "runs_by_operator": dict(sorted(Counter(str(r["operator"]) for r in records).items())),
        "alarms_by_operator": dict(Counter(str(r["operator"]) for r in records if r["alarms"])),
        "median_seconds_a_run": seconds[len(seconds) // 2] if seconds else None,
        "seed": seed,
        "runs_by_commit": dict(Counter(str(r["commit"]) for r in records)),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "machine": platform.machine(),
    }


def main() -> None:
    """Continue the study, then summarise it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("false_alarms.jsonl"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--summary", type=Path)
    arguments = parser.parse_args()
    arguments.out.touch()
    done = {json.loads(line)["run"] for line in arguments.out.read_text().splitlines()}
    missing = [run for run in range(arguments.runs) if run not in done]
    with arguments.out.open("a") as out:
        for record in study(missing, arguments.seed, arguments.processes):
            out.write(json.dumps(record) + "\n")
            out.flush()
    records = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    text = json.dumps(summary(records, arguments.seed), indent=2)
    if arguments.summary:
        arguments.summary.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
