"""Seconds that ``operators.laws.check`` takes with the standard budget, one JSON line an operator, on one core.

Run ``python docs/studies/conformance_seconds.py > docs/data/conformance_seconds.jsonl``: the first example of every
operator, after a quick check that compiles its kernels.
"""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import version

import torch

from operators import all_operators
from operators.laws import Budget, check


def main() -> None:
    """One core, one operator after the other."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    versions = {name: version(name) for name in ("numpy", "torch", "numba")}
    print(json.dumps({"machine": platform.machine(), "python": platform.python_version(), **versions, "seed": 1}))
    for cls in all_operators().values():
        op = cls.examples()[0]
        check(op, budget=Budget.quick(), seed=1)
        started = time.perf_counter()
        report = check(op, seed=1)
        print(json.dumps({"operator": repr(op), "ok": report.ok, "seconds": round(time.perf_counter() - started, 2)}))


if __name__ == "__main__":
    main()
