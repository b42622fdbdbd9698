"""What every operator of the catalogue sends and loses on Gaussian vectors, beside its claim: the page's points.

    python docs/benchmarks/measured_operators.py > ratedist/interfaces/page/measured.json

The first example of every operator with an unbiased or contractive claim, at three dimensions.  Every message is of a
vector of its own, with a key of its own; bits and nmse are means over the messages, with the half widths of 95 %
Student intervals.  ``constant`` is the claimed omega or alpha at that dimension,
``stated_bits`` the bits that the operator states for it: exact, at most on average, or at most.
"""

# ruff: noqa: E402  threads and the search path must be set before the imports
from __future__ import annotations

import json
import os
import sys
from typing import Any

# A neighbour of this file has the name of a package: its folder must not be searched.
sys.path[:] = [f for f in sys.path if os.path.abspath(f or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import t as student

from bounds.claims import NoClaim, Unbiased
from gpu_validation.records.environment import environment
from operators import Key, Operator, all_operators, specification

SEED = 0
MESSAGES = {2**7: 400, 2**14: 40, 2**20: 5}  # by dimension; powers of two, at which rotations prove their claims
LEVEL = 0.975  # 95 % two-sided
DIGITS = 6


def measure(op: Operator, d: int, n: int) -> dict[str, Any] | None:
    """One record; None where the operator claims nothing or does not take the dimension."""
    try:
        claim, size = op.claim(d), op.bits(d)
    except ValueError:
        return None
    if isinstance(claim, NoClaim):
        return None
    bits, nmse = np.empty(n), np.empty(n)
    rng = np.random.default_rng(SEED)
    for i in range(n):
        x = rng.standard_normal(d, dtype=np.float32)
        key = Key(SEED, step=i)
        message = op.encode(x, key=key)
        error = op.decode(message, d=d, key=key).numpy().astype(np.float64) - x
        bits[i], nmse[i] = message.bits, error @ error / np.square(x, dtype=np.float64).sum()
    wide = float(student.ppf(LEVEL, n - 1)) / np.sqrt(n)
    stated = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    measured = {
        "constant": claim.omega if isinstance(claim, Unbiased) else claim.alpha,
        "stated_bits": stated,
        "bits": bits.mean(),
        "bits_half_width": bits.std(ddof=1) * wide,
        "nmse": nmse.mean(),
        "nmse_half_width": nmse.std(ddof=1) * wide,
    }
    kind = "unbiased" if isinstance(claim, Unbiased) else "contractive"
    rounded = {name: None if value is None else float(f"{value:.{DIGITS}g}") for name, value in measured.items()}
    return {"operator": specification(op), "kind": kind, "d": d, "n": n, **rounded}


def main() -> None:
    head = {**environment(), "vectors": "standard normal", "seed": SEED, "level": 0.95}
    subjects = [(cls.examples()[0], d, n) for d, n in MESSAGES.items() for cls in all_operators().values()]
    rows = filter(None, (measure(*subject) for subject in subjects))
    lines = ",\n".join(json.dumps(row) for row in rows)
    print(f'{json.dumps(head)[:-1]}, "points": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
