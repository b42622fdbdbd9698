"""Cost of the theory, as JSON lines: importing it, and evaluating every Bound by broadcasting.

Run ``python docs/benchmarks/theory.py``.  Imports are timed in fresh interpreters, in turn with ``import sympy``, and
given as a ratio of medians.  Bounds are evaluated on POINTS random points around their own first example, one core.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import numpy as np

from bounds import all_bounds

POINTS = 200_000
IMPORTS = 9
SPREAD = 1e-3  # relative distance of the points from the example, small enough to stay inside the assumptions


def import_seconds(module: str) -> float:
    """Seconds of one import in a fresh interpreter, the interpreter's own start excluded."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def imports() -> dict[str, float]:
    """Median seconds of both imports, taken in turn, and their ratio."""
    pairs = [(import_seconds("bounds"), import_seconds("sympy")) for _ in range(IMPORTS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"bounds_s": ours, "sympy_s": theirs, "ratio": ours / theirs}


def points(bound) -> dict[str, np.ndarray]:
    """Arguments near the first example; integers stay as they are, so that no assumption breaks."""
    rng = np.random.default_rng(0)
    at = {}
    for name, value in bound.examples[0].at.items():
        centre = float(value)
        jitter = 1 if centre == round(centre) else 1 + SPREAD * rng.uniform(-1, 1, POINTS)
        at[name] = centre * jitter * np.ones(POINTS)
    return at


def points_per_second(bound) -> float:
    """Best of three calls on POINTS points."""
    at = points(bound)
    bound(**at)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        bound(**at)
        seconds.append(time.perf_counter() - start)
    return POINTS / min(seconds)


def main() -> None:
    print(json.dumps({"what": "import", **imports()}))
    for name, bound in all_bounds().items():
        if name == "gaussian_block_miss":
            continue  # a two-dimensional integral a point, not a closed form
        print(json.dumps({"what": name, "points_per_s": round(points_per_second(bound))}), flush=True)


if __name__ == "__main__":
    main()
