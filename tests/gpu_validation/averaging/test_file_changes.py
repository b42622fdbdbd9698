"""The path of one compressed averaging is straight: a reader who follows it opens few files.

A file is opened at every call into another file of the packages.  Calls within one file, returns, and calls of the
standard library, numpy, torch and numba are not counted.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gpu_validation import SimulatedWorkers
from operators import QSGD

ROOT = Path(__file__).parents[3]
PACKAGES = tuple(str(ROOT / name) for name in ("bounds", "operators", "ratedist", "gpu_validation"))
WORKERS, D = 2, 64


def changes_of_file(workers: SimulatedWorkers) -> Counter[tuple[str, str]]:
    """Calls from one file of the packages into another during one synchronisation, by the two files."""
    found: Counter[tuple[str, str]] = Counter()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGES):
            caller = frame.f_back
            while caller is not None and not caller.f_code.co_filename.startswith(PACKAGES):
                caller = caller.f_back
            if caller is not None and caller.f_code.co_filename != frame.f_code.co_filename:
                names = (Path(code.co_filename).relative_to(ROOT) for code in (caller.f_code, frame.f_code))
                found[tuple(map(str, names))] += 1  # type: ignore[index]

    sys.setprofile(look)
    try:
        workers.average()
    finally:
        sys.setprofile(None)
    return found


def workers_at_work() -> SimulatedWorkers:
    """Workers whose first compressed synchronisation, which compiles and imports, is behind them."""
    model = torch.nn.Linear(D, 1, bias=False)
    workers = SimulatedWorkers([copy.deepcopy(model) for _ in range(WORKERS)], schedule=1, operator=QSGD(levels=16))
    workers.average()
    return workers


def test_one_compressed_averaging_changes_file_55_times_at_most():
    changes = changes_of_file(workers_at_work())

    # 39, and 16 by way of the file that shares work over threads; one function reads every vector, for two workers
    assert sum(changes.values()) <= 55, changes
    called = {called for _, called in changes}
    assert {"operators/compressors/qsgd.py", "operators/kernels/elias/cpu.py"} <= called, "both directions count"
