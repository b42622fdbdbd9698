"""Bits and distortion of Sparse Dithering and Spherical Compression on random directions, as JSON lines.

    python docs/measure.py benchmarks/bits_per_message.py > docs/data/bits_per_message.jsonl

Every message is of a Gaussian vector of its own, with a key of its own.  bits and nmse are means over the messages,
with the half widths of 95 % Student intervals; most_bits and most_nmse are the largest that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from messages import of_gaussian_vectors

from operators import (
    ArithmeticSparseDithering,
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


def subjects() -> Iterator[tuple[Operator, int]]:
    """Yield (operator, d)."""
    for nu in LEVELS:
        yield SparseDithering(nu=nu), D
        yield ArithmeticSparseDithering(nu=nu), D
    for omega in OMEGAS:
        yield RandomisedSparseDithering(omega=omega), D
    for alpha in ALPHAS:
        for block in BLOCKS:
            if _cheap(alpha, block):
                yield SphericalCompression(alpha=alpha, block=block), block


def _cheap(alpha: float, block: int) -> bool:
    """Whether the operator takes the pair: it refuses those that would need too many draws."""
    try:
        SphericalCompression(alpha=alpha, block=block)
    except ValueError:
        return False
    return True


def main(dithering: int = 40, spherical: int = 2000) -> Iterator[dict[str, Any]]:
    """Measure so many messages of every operator."""
    for op, d in subjects():
        n = dithering if d == D else spherical
        yield {"operator": specification(op), "d": d, "n": n, "seed": SEED, **of_gaussian_vectors(op, d, n, SEED)}
