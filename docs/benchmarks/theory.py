"""Seconds of the theory beside those of others, as JSON lines: its import, and the probability of a cap.

Run ``python docs/measure.py benchmarks/theory.py {import,cap}``; half a minute.  Both sides take turns, in processor
seconds: imports of ``bounds`` and ``sympy`` in fresh interpreters, and ``neg_log2_cap`` against scipy's incomplete beta
function where that still works.  ratio is that of the medians, with its 95 % bootstrap interval.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any, Literal

import numpy as np
from comparing import in_turns, quotient
from scipy.special import betainc

from bounds.special.cap_probability import neg_log2_cap

IMPORTS = 15
POINTS, SECONDS = 100_000, 0.5


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


def cap() -> dict[str, Any]:
    """Ratio at random points."""
    rng = np.random.default_rng(0)
    alpha, d = rng.uniform(0.05, 0.95, POINTS), np.round(np.exp(rng.uniform(np.log(2), np.log(200), POINTS)))
    turns = in_turns((lambda: neg_log2_cap(alpha, d), lambda: betainc((d - 1) / 2, 0.5, alpha)), SECONDS)
    ratio, interval = quotient(*turns)
    return {"points": POINTS, "turns": turns.shape[1], "ratio": ratio, "interval": interval}


def main(what: Literal["import", "cap"]) -> Iterator[dict[str, Any]]:
    """Measure one of them."""
    yield {"what": "import", **imports()} if what == "import" else {"what": "neg_log2_cap against betainc", **cap()}
