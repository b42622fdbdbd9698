"""Cost of the theory, as JSON lines: importing it, and evaluating every Bound by broadcasting.

Run ``python docs/measure.py benchmarks/theory.py``; half a minute.  Imports are timed in fresh interpreters, in turn
with ``import sympy``, in processor seconds; their ratio is that of the medians, with its 95 % bootstrap interval.
Bounds are evaluated on random points around their own first example, POINTS or as many as take SECONDS: the best of
three calls, by the processor time of one thread."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from comparing import quotient

from bounds import Bound, all_bounds
from gpu_validation.records.environment import environment

POINTS, FEW = 200_000, 1_000
SECONDS = 0.3
IMPORTS = 15
SPREAD = 1e-3  # relative distance of the points from the example, small enough to stay inside the assumptions


def import_seconds(module: str) -> float:
    """Processor seconds of one import in a fresh interpreter, the interpreter's own start excluded."""
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def imports() -> dict[str, Any]:
    """Median seconds of both imports, taken in turn, and their ratio."""
    pairs = [(import_seconds("bounds"), import_seconds("sympy")) for _ in range(IMPORTS)]
    bounds_s, sympy_s = zip(*pairs, strict=True)
    ratio, interval = quotient(bounds_s, sympy_s)
    return {"bounds_s": median(bounds_s), "sympy_s": median(sympy_s), "ratio": ratio, "interval": interval}


def points(bound: Bound, count: int) -> dict[str, np.ndarray]:
    """Arguments near the first example; integers stay as they are, so that no assumption breaks."""
    rng = np.random.default_rng(0)
    at = {}
    for name, value in bound.examples[0].at.items():
        centre = float(value)
        jitter = 1 if centre == round(centre) else 1 + SPREAD * rng.uniform(-1, 1, count)
        at[name] = centre * jitter * np.ones(count)
    return at


def seconds_of(bound: Bound, count: int) -> float:
    """Processor seconds of one call on so many points."""
    at = points(bound, count)
    start = time.thread_time()
    bound(**at)
    return time.thread_time() - start


def points_per_second(bound: Bound) -> float:
    """Best of three calls."""
    seconds_of(bound, FEW)
    count = min(POINTS, int(FEW * SECONDS / max(seconds_of(bound, FEW), 1e-9)))
    return count / min(seconds_of(bound, count) for _ in range(3))


def main() -> Iterator[dict[str, Any]]:
    """The header, the imports and a record for every Bound that takes an argument."""
    yield environment()
    yield {"what": "import", **imports()}
    for name, bound in all_bounds().items():
        if name != "gaussian_block_miss" and bound.examples[0].at:  # the one has a two-dimensional integral a point
            yield {"what": name, "points_per_s": round(points_per_second(bound))}
