"""How often one compressed synchronisation of simulated workers changes file: calls into another file of the packages.

    python docs/measure.py benchmarks/file_changes.py

A reader who follows a synchronisation from call to call opens a file at every such call.  Calls that the packages make
within one file, and those of the standard library, numpy, torch and numba, are not counted; neither are returns.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gpu_validation import SimulatedWorkers
from operators import QSGD

ROOT = Path(__file__).parents[2]
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


def main() -> Iterator[dict[str, Any]]:
    """Every pair of files with its number of calls."""
    for (caller, called), times in changes_of_file(workers_at_work()).most_common():
        yield {"caller": caller, "called": called, "times": times}
