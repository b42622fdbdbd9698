"""How often does a whole check accuse an honest compressor?  Every law that applies, at the standard budget.

Subjects are every example of the catalogue, feedback methods and mergers too, and the rules of ``honest_subjects.py``
as functions and as codecs with keys.  Run i checks subject i mod n with seed ``--seed`` + i // n; the random streams
of torch, numpy and Python begin with the seed too.  Nothing is shrunk, and the laws that draw have a third of the
standard seconds, so that more runs are made: a run with fewer draws has no larger level.  One JSON line a run is
appended to ``--out``, with its commit; runs already there are not repeated.  The totals go to a file beside it.

``kit`` in a line is a digest of the kit's files, of the budget and of the subjects' names.  A record of another kit is
refused: all runs of one record judge the same laws.

    nice python docs/measure.py studies/honest_runs.py
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from honest_subjects import RULES, Honest, subjects
from measure import in_data, resume, summarised

import operators.laws
from gpu_validation.records.environment import commit
from gpu_validation.records.storage import read_lines
from operators import all_operators
from operators.laws import Budget, check

SEEDS = 15
STANDARD = Budget()
BUDGET = replace(STANDARD, seconds=STANDARD.seconds / 3, most_seconds=STANDARD.most_seconds / 3, shrinking=0)


@cache
def honest() -> dict[str, tuple[Any, Honest | None]]:
    """The subjects by name; of an operator of the catalogue the claim is its own."""
    catalogue = {repr(op): (op, None) for cls in all_operators().values() for op in cls.examples()}
    return catalogue | subjects()


@cache
def kit() -> str:
    """Return the state of the kit: a digest of its files, of the budget and of the names of the subjects."""
    folder = Path(operators.laws.__file__).parent
    digest = hashlib.sha256(repr((BUDGET, list(honest()))).encode())
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def refuse_another_kit(out: Path) -> None:
    """Exit if a record was made with another state of the kit."""
    others = {record.get("kit") for record in read_lines(out)} - {kit()} if out.exists() else set()
    if others:
        raise SystemExit(
            f"all runs of {out} must be of one state of the kit; this is {kit()}, the record has {others}: give "
            "another --out, or check out the commit that the record names"
        )


def one(run: int, seed: int) -> dict[str, object]:
    """The record of one run."""
    name = list(honest())[run % len(honest())]
    subject, rule = honest()[name]
    number = seed + run // len(honest())
    torch.manual_seed(number)
    started = time.process_time()
    stated = {"claim": rule.claim, "ceiling": rule.ceiling or None} if rule else {}
    report = check(subject, budget=BUDGET, seed=number, **stated)
    return {
        "run": run,
        "subject": name,
        "seed": number,
        "failures": {v.law: v.text for v in report.failures},
        "inconclusive": [v.law for v in report.verdicts if v.outcome.name == "INCONCLUSIVE"],
        "seconds": round(time.process_time() - started, 2),
        "kit": kit(),
        "commit": commit(),
    }


def summary(records: list[dict[str, Any]]) -> dict[str, object]:
    """Totals."""
    seconds = sorted(float(r["seconds"]) for r in records)
    tight = {f"{name}, {form}" for name, h in RULES.items() if h.ceiling for form in ("function", "codec")}
    return {
        "runs": len(records),
        "planned": SEEDS * len(honest()),
        "subjects": len({r["subject"] for r in records}),
        "of_the_catalogue": len(honest()) - len(subjects()),
        "runs_with_tight_claims_and_a_ceiling": sum(r["subject"] in tight for r in records),
        "level_per_run": BUDGET.false_alarm,
        "accused": [
            {"subject": r["subject"], "seed": r["seed"], "failures": r["failures"]} for r in records if r["failures"]
        ],
        "kits": sorted({str(r["kit"]) for r in records}),
        "median_processor_seconds_a_run": seconds[len(seconds) // 2],
        "runs_by_commit": dict(Counter(str(r["commit"]) for r in records)),
    }


def main(runs: int = 0, seed: int = 1, out: str = "honest_runs.jsonl") -> Iterator[dict[str, Any]]:
    """Continue the study up to so many runs, 0 for all that are planned, then summarise it."""
    refuse_another_kit(in_data(out))
    planned = range(runs or SEEDS * len(honest()))
    records = resume(out, planned, lambda r: r["run"], lambda missing: (one(run, seed) for run in missing))
    yield summarised(summary(records), out)
