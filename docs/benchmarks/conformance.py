"""Seconds that ``operators.laws.check`` takes with the standard budget, one JSON line a subject.

Run ``python docs/benchmarks/conformance.py > docs/data/conformance_seconds.jsonl``; four minutes: the first example
of every operator, after a quick check that compiles its kernels, and between them FUNCTIONS honest functions of
``docs/studies/honest_subjects.py``.  Processor seconds of the process, with one thread.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import zip_longest
from pathlib import Path

# A neighbour of this file has the name of the package it measures: this folder must be searched last.
sys.path.sort(key=lambda f: os.path.abspath(f or ".") == os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from gpu_validation.records.environment import environment
from operators import all_operators
from operators.laws import Budget, check

sys.path.append(str(Path(__file__).parents[1] / "studies"))
from honest_subjects import RULES, function

SEED = 1
FUNCTIONS = 16


def timed(subject: object, name: str, form: str, **stated: object) -> None:
    """Print the seconds of one check."""
    started = time.process_time()
    report = check(subject, seed=SEED, **stated)
    seconds = round(time.process_time() - started, 2)
    print(json.dumps({"operator": name, "form": form, "ok": report.ok, "seconds": seconds}), flush=True)


def main() -> None:
    """One operator after the other, with a function between two."""
    torch.set_num_threads(1)
    print(json.dumps(environment() | {"seed": SEED}), flush=True)
    operators = [cls.examples()[0] for cls in all_operators().values()]
    rules = list(RULES.items())[:: len(RULES) // FUNCTIONS][:FUNCTIONS]
    for op, named in zip_longest(operators, rules):
        if named:
            name, rule = named
            timed(function(rule.rule), name, "function", claim=rule.claim, ceiling=rule.ceiling or None)
        if op:
            check(op, budget=Budget.quick(), seed=SEED)
            timed(op, repr(op), "codec")


if __name__ == "__main__":
    main()
