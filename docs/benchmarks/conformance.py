"""Seconds that ``operators.laws.check`` takes with the standard budget, one JSON line an operator.

Run ``python docs/benchmarks/conformance.py > docs/data/conformance_seconds.jsonl``; two minutes: the first example
of every operator, after a quick check that compiles its kernels.  Processor seconds of the process, with one thread.
"""

from __future__ import annotations

import json
import os
import sys
import time

# A neighbour of this file has the name of the package it measures: this folder must be searched last.
sys.path.sort(key=lambda f: os.path.abspath(f or ".") == os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from gpu_validation.records.environment import environment
from operators import all_operators
from operators.laws import Budget, check

SEED = 1


def main() -> None:
    """One operator after the other."""
    torch.set_num_threads(1)
    print(json.dumps(environment() | {"seed": SEED}), flush=True)
    for cls in all_operators().values():
        op = cls.examples()[0]
        check(op, budget=Budget.quick(), seed=SEED)
        started = time.process_time()
        report = check(op, seed=SEED)
        seconds = round(time.process_time() - started, 2)
        print(json.dumps({"operator": repr(op), "ok": report.ok, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
