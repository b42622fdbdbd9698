"""What the benchmarks that compare share: a ratio with its interval, and what the numbers depend on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESAMPLES, LEVEL = 2000, 0.95


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
