"""Bits and distortion of Sparse Dithering and Spherical Compression on random directions, as JSON lines.

    python docs/measure.py benchmarks/bits_per_message.py > docs/data/bits_per_message.jsonl

Every message is of a Gaussian vector of its own, with a key of its own.  bits and nmse are means over the messages,
with the half widths of 95 % Student intervals; most_bits and most_nmse are the largest that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import t as student

from gpu_validation.records.environment import environment
from operators import (
    ArithmeticSparseDithering,
    Key,
    Operator,
    RandomisedSparseDithering,
    SparseDithering,
    SphericalCompression,
    specification,
)

SEED = 0
D = 10_000
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # of nu
OMEGAS = (0.02, 0.1, 0.5, 1.0, 4.0, 16.0, 64.0)
ALPHAS = (0.2, 0.4, 0.6, 0.8, 0.9)
BLOCKS = (2, 4, 8, 12)
MESSAGES = {"dithering": 40, "spherical": 2000}


def subjects() -> Iterator[tuple[Operator, int, int]]:
    """(operator, d, number of messages)."""
    for nu in LEVELS:
        yield SparseDithering(nu=nu), D, MESSAGES["dithering"]
        yield ArithmeticSparseDithering(nu=nu), D, MESSAGES["dithering"]
    for omega in OMEGAS:
        yield RandomisedSparseDithering(omega=omega), D, MESSAGES["dithering"]
    for alpha in ALPHAS:
        for block in BLOCKS:
            if _cheap(alpha, block):
                yield SphericalCompression(alpha=alpha, block=block), block, MESSAGES["spherical"]


def _cheap(alpha: float, block: int) -> bool:
    """Whether the operator takes the pair: it refuses those that would need too many draws."""
    try:
        SphericalCompression(alpha=alpha, block=block)
    except ValueError:
        return False
    return True


def measure(op: Operator, d: int, n: int) -> dict[str, object]:
    """One record."""
    bits, nmse = np.empty(n), np.empty(n)
    rng = np.random.default_rng(SEED)
    for i in range(n):
        x = rng.standard_normal(d, dtype=np.float32)
        key = Key(SEED, step=i)
        message = op.encode(x, key=key)
        error = op.decode(message, d=d, key=key).numpy().astype(np.float64) - x
        bits[i], nmse[i] = message.bits, error @ error / np.square(x, dtype=np.float64).sum()
    wide = float(student.ppf(0.975, n - 1)) / np.sqrt(n)
    return {
        "operator": specification(op),
        "d": d,
        "n": n,
        "seed": SEED,
        "bits": float(bits.mean()),
        "bits_half_width": float(bits.std(ddof=1) * wide),
        "most_bits": float(bits.max()),
        "nmse": float(nmse.mean()),
        "nmse_half_width": float(nmse.std(ddof=1) * wide),
        "most_nmse": float(nmse.max()),
    }


def main() -> Iterator[dict[str, Any]]:
    yield environment()
    yield from (measure(op, d, n) for op, d, n in subjects())
