"""Errors of inner products of vector quantisers against their constants, as JSON lines.

    python docs/measure.py benchmarks/inner_products.py > docs/data/inner_products.jsonl

Every message is of a Gaussian vector x of its own with a key of its own, asked for <q, x> by 16 Gaussian queries of
its own. omega_ip is d (estimate - <q, x>)^2/(|q| |x|)^2, the mean over queries and messages, standard_error that of
the mean over messages.  constant is what theory says of the average query and kind how: "exact" at this d, or "limit"
for large d where the rotation is not uniform, or "bound" from above.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from messages import coded

from bounds.limits import (
    eden_inner_product,
    eden_inner_product_limit,
    turboquant_inner_product,
    turboquant_mse,
)
from operators import EDEN, Key, Operator, RaBitQ, TurboQuant, specification

SEED = 0
QUERIES = 16
MESSAGES = {64: 4000, 256: 1000}  # by d
BITS = (1, 2, 3, 4)


def subjects() -> Iterator[tuple[Operator, int, float, str]]:
    """(operator, d, constant, kind)."""
    for d in MESSAGES:
        for b in BITS:
            at = {"bits_per_coordinate": b, "d": d}
            yield TurboQuant(b), d, turboquant_inner_product(**at), "exact"
            yield TurboQuant(b, "mse"), d, turboquant_mse(**at), "exact"
            uniform = d <= 64
            limit = eden_inner_product(**at) if uniform else eden_inner_product_limit(bits_per_coordinate=b)
            yield EDEN(b), d, limit, "exact" if uniform else "limit"
            yield RaBitQ(b), d, RaBitQ(b).claim(d).omega, "exact" if b == 1 else "bound"


def measure(op: Operator, d: int, n: int, rank: int) -> dict[str, object]:
    """One record; ``rank`` gives it random numbers of its own."""
    rng, found = np.random.default_rng([SEED, rank]), np.empty(n)
    for i in range(n):
        x = rng.standard_normal(d, dtype=np.float32)
        message, error = coded(op, x, Key(SEED, step=i, rank=rank))
        q = rng.standard_normal((QUERIES, d))
        sizes = (q * q).sum(axis=1) * np.square(x, dtype=np.float64).sum()
        found[i] = d * ((q @ error) ** 2 / sizes).mean()
    return {
        "operator": specification(op),
        "d": d,
        "bits": op.bits_per_coordinate,  # type: ignore[attr-defined]
        "message_bits": message.bits,
        "n": n,
        "seed": SEED,
        "omega_ip": float(found.mean()),
        "standard_error": float(found.std(ddof=1) / np.sqrt(n)),
    }


def main(share: float = 1.0) -> Iterator[dict[str, Any]]:
    """Measure every operator, with a share of the messages."""
    for rank, (op, d, constant, kind) in enumerate(subjects()):
        yield {**measure(op, d, int(share * MESSAGES[d]), rank), "constant": constant, "kind": kind}
