"""Seconds that ``operators.laws.check`` takes with the standard budget, one JSON line an operator.

Run ``python docs/studies/conformance_seconds.py > docs/data/conformance_seconds.jsonl``; two minutes: the first example
of every operator, after a quick check that compiles its kernels.  Processor seconds of the process, with one thread.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from operators import all_operators
from operators.laws import Budget, check


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip() or None,
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "torch", "numba")},
        "load": [round(load, 2) for load in os.getloadavg()],
        "seed": 1,
    }


def main() -> None:
    """One operator after the other."""
    torch.set_num_threads(1)
    print(json.dumps(environment()), flush=True)
    for cls in all_operators().values():
        op = cls.examples()[0]
        check(op, budget=Budget.quick(), seed=1)
        started = time.process_time()
        report = check(op, seed=1)
        seconds = round(time.process_time() - started, 2)
        print(json.dumps({"operator": repr(op), "ok": report.ok, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
