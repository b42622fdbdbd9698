"""Measure the mean of m Gaussian vectors by gathering, in two shots and by shared scales: bits sent and relative error.

nice python docs/measure.py benchmarks/sums_of_vectors.py > docs/data/sums_of_vectors.jsonl
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from bounds.theorems import gather_error, two_shot_exact_error
from operators import TCDQ, Key
from operators.exchange import mean_of_ranks
from operators.summed import SharedScale, sum_of_ranks

D, DRAWS, SEED = 65_536, 4, 0
WORKERS = (2, 4, 8, 16, 32, 64)
WIRES = (4.0, 8.0)  # bits sent a coordinate and rank
OMEGA = 0.1  # of the same code at every m
HEAD = {"d": D, "draws": DRAWS, "seed": SEED}


def sent(omega: float, d: int) -> float:
    """Bits per coordinate that TCDQ takes for one Gaussian vector of length d."""
    x = torch.randn(d, generator=torch.Generator().manual_seed(SEED))
    return TCDQ(omega).encode(x, key=Key(SEED)).bits / d


def omega_at(bits: float, d: int) -> float:
    """The constant at which TCDQ takes that many bits per coordinate, by bisection in its logarithm."""
    low, high = 1e-6, 1e4
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if sent(middle, d) > bits else (low, middle)
    return float(f"{high:.6g}")


def measured(m: int, mean_of: Callable[[list[torch.Tensor], Key], Any], law: Callable[..., float]) -> dict[str, Any]:
    """Bits that a rank sends, relative error, and what the law says of the same vectors; means over the draws."""
    sums = {"sent_bits": 0.0, "nmse": 0.0, "law": 0.0}
    for draw in range(DRAWS):
        vectors = torch.randn(m, D, generator=torch.Generator().manual_seed(SEED + 1000 * draw + m))
        mean = vectors.double().mean(dim=0)
        square = float(mean.square().sum())
        result = mean_of(list(vectors), Key(SEED, step=draw))
        sums["sent_bits"] += sum(result.sent_bits) / m / D / DRAWS
        sums["nmse"] += float((result.mean.double() - mean).square().sum()) / square / DRAWS
        sums["law"] += law(vectors, square) / square / DRAWS
    return sums


def by_operator(m: int, omega: float, exchange: str) -> dict[str, Any]:
    """Gathered, or in two shots, with TCDQ at both stages."""

    def law(vectors: torch.Tensor, square: float) -> float:
        mean_square = float(vectors.double().square().sum()) / m
        if exchange == "gather":
            return float(gather_error(omega=omega, mean_square=mean_square, m=m))
        stages = {"omega1": omega, "omega2": omega}
        return float(two_shot_exact_error(mean_square=mean_square, square_of_mean=square, m=m, **stages))

    operator = TCDQ(omega)
    return measured(m, lambda xs, key: mean_of_ranks(xs, operator, exchange=exchange, key=key), law)


def by_shared_scale(m: int, word_bits: int) -> dict[str, Any]:
    """Integers of one scale for every 256 coordinates."""
    method = SharedScale(word_bits, block=256)
    return measured(
        m,
        lambda xs, key: sum_of_ranks(xs, method, key=key),
        lambda vectors, square: method.square_error(list(vectors.numpy())),
    )


def main(workers: tuple[int, ...] = WORKERS) -> Iterator[dict[str, Any]]:
    """A record for every point."""
    for m in workers:
        for wire in WIRES:
            for exchange, bits, d in (("gather", wire / (m - 1), D), ("two_shot", wire * m / (2 * (m - 1)), D // m)):
                omega = omega_at(bits, d)
                point = {"exchange": exchange, "m": m, "wire": wire, "omega": omega}
                yield {**point, **by_operator(m, omega, exchange)}
        for exchange in ("gather", "two_shot"):
            yield {"exchange": exchange, "m": m, "omega": OMEGA, **by_operator(m, OMEGA, exchange)}
        yield {"exchange": "sum", "m": m, "word_bits": 8, **by_shared_scale(m, 8)}
