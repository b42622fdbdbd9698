"""What the benchmarks that compare share: a ratio with its interval, and what the numbers depend on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESAMPLES, LEVEL = 2000, 0.95
TURNS, MOST_TURNS = 7, 100


def in_turns(calls: Sequence[Callable[[], object]], seconds: float) -> np.ndarray:
    """Processor seconds of this thread, shape (calls, turns): all calls one after the other in every turn.

    The order alternates; there are TURNS at least, and as many as take so many seconds a call; one turn warms up.
    """
    for call in calls:
        call()
    turns: list[list[float]] = []
    while len(turns) < TURNS or (np.sum(turns) < seconds * len(calls) and len(turns) < MOST_TURNS):
        taken = [0.0] * len(calls)
        for i in range(len(calls)) if len(turns) % 2 else reversed(range(len(calls))):
            start = time.thread_time()
            calls[i]()
            taken[i] = time.thread_time() - start
        turns.append(taken)
    return np.transpose(turns)


def quotient(above: Sequence[float], below: Sequence[float]) -> tuple[float, list[float]]:
    """Divide the median of one of two paired samples by the other's, with a bootstrap interval."""
    pairs = np.array([above, below])
    rows = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    medians = np.median(pairs[:, rows], axis=2)
    ends = np.quantile(medians[0] / medians[1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return round(float(np.median(above) / np.median(below)), 4), [round(float(end), 4) for end in ends]


def environment() -> dict[str, Any]:
    """The script that runs, its commit, the versions, the machine and its load; one thread."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "command": " ".join(["python", f"docs/benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "commit": commit.stdout.strip() or None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "threads": 1,
    }
