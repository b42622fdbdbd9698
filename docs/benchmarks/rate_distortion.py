"""Distortion against real bits on synthetic and real vectors, and the gap to the limit, as JSON lines.

    python docs/measure.py benchmarks/rate_distortion.py > docs/data/rate_distortion.jsonl

Bits are those of the message, everything counted, but for two rivals that are given the benefit of the doubt:
"qsgd_entropy" is billed the zero-order entropy of its levels and a norm; "eden" below one bit sends a random part of
the rotated coordinates and is not billed for saying which.
The limit is NMSE = 1/(4^R - 1) for unbiased operators; ``gap`` is R - log2(1 + 1/NMSE)/2, for contractive ones
R - log2(1/NMSE)/2.  The gradients are those of networks trained on the digits that scikit-learn carries; their
coordinates that are exactly zero are taken out in "dense" and kept in "all".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from messages import bits_and_nmse

from bounds.claims import Contractive
from operators import EDEN, QSGD, TCDQ, Key, Operator, SparseDithering, TopK
from ratedist.cluster.compressors import limit_rate

RATES = (0.4, 0.6, 1.0, 2.0, 3.0, 4.0, 6.0)
D = 100_000
DRAWS = 3
GRADIENT_STEPS = {"early": 60, "late": 400}


# -- vectors ----------------------------------------------------------------------------------------------------
def synthetic() -> Iterator[tuple[str, np.ndarray]]:
    """Gaussian, Laplace, Student-t with 3 degrees of freedom, 5 % sparse."""
    rng = np.random.default_rng(0)
    yield "gauss", rng.standard_normal(D)
    yield "gauss, d = 10^4", rng.standard_normal(10_000)
    yield "gauss, d = 2 10^5", rng.standard_normal(200_000)
    yield "laplace", rng.laplace(size=D)
    yield "t3", rng.standard_t(3, D)
    yield "sparse 5 %", rng.standard_normal(D) * (rng.random(D) < 0.05)


def network(kind: str) -> torch.nn.Module:
    """An MLP with 85,002 parameters or a CNN with 136,586."""
    nn = torch.nn
    if kind == "mlp":
        layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
        return nn.Sequential(nn.Flatten(), *layers)
    body = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(2048, 64), nn.ReLU(), nn.Linear(64, 10))


def gradients() -> Iterator[tuple[str, np.ndarray]]:
    """Minibatch gradients early and late in training, with and without the coordinates that are exactly zero."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    for kind in ("mlp", "cnn"):
        torch.manual_seed(1)
        model, draw = network(kind), torch.Generator().manual_seed(2)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(1, max(GRADIENT_STEPS.values()) + 1):
            batch = torch.randint(len(labels), (64,), generator=draw)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            for name, at in GRADIENT_STEPS.items():
                if step == at:
                    flat = torch.cat([p.grad.flatten() for p in model.parameters()]).numpy().copy()
                    yield f"{kind} {name}, all", flat
                    yield f"{kind} {name}, dense", flat[flat != 0]
            optimiser.step()


# -- operators ---------------------------------------------------------------------------------------------------
Point = tuple[float, float]  # bits per coordinate, NMSE


def measured(operator: Operator, x: np.ndarray) -> Point:
    """Means over a few draws."""
    bits, nmse = np.mean([bits_and_nmse(operator, x, Key(7, step=draw)) for draw in range(DRAWS)], axis=0)
    return float(bits), float(nmse)


def at_rate(build: Callable[[float], Operator], x: np.ndarray, rate: float, low: float, high: float) -> Operator | None:
    """The operator whose messages have ``rate`` bits; bits must grow with the parameter, searched on a log scale."""

    def bits(value: float) -> float:
        return build(value).encode(x, key=Key(7)).bits / x.size

    if not bits(low) <= rate <= bits(high):
        return None
    for _ in range(24):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bits(middle) < rate else (low, middle)
    return build(low)


def qsgd_entropy(x: np.ndarray, rate: float) -> Point:
    """QSGD by the Euclidean norm, billed the entropy of its levels."""
    rng = np.random.default_rng(1)
    unit, u = np.abs(x) / np.linalg.norm(x), rng.random(x.size)

    def point(s: float) -> Point:
        levels = np.sign(x) * np.floor(s * unit + u)
        p = np.unique(levels, return_counts=True)[1] / x.size
        return float(-(p * np.log2(p)).sum()) + 32 / x.size, float(((levels / s - x / np.linalg.norm(x)) ** 2).sum())

    low, high = 1e-3, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if point(middle)[0] < rate else (low, middle)
    return point(low)


def rotated(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A randomised Hadamard transform of the vector padded to a power of two."""
    size = 1 << (x.size - 1).bit_length()
    z = np.zeros(size)
    z[: x.size] = x
    z *= rng.choice([-1.0, 1.0], size)
    h = 1
    while h < size:
        z = z.reshape(-1, 2, h)
        z = np.stack([z[:, 0] + z[:, 1], z[:, 0] - z[:, 1]], axis=1).reshape(-1)
        h *= 2
    return z / math.sqrt(size)


def eden(x: np.ndarray, rate: float) -> Point:
    """The operator from one bit on; below, its unbiased scale and a random part of the rotated coordinates.

    The part is not billed for padding: z has the law of x's rotation, cut to the rate.
    """
    if rate >= 1:
        return measured(EDEN(bits_per_coordinate=int(rate)), x)
    rng, share = np.random.default_rng(3), rate
    z, norm = rotated(x, rng), float(np.linalg.norm(x))
    q = math.sqrt(2 / math.pi) * np.where(z < 0, -1.0, 1.0)
    kept = rng.random(z.size) < share
    decoded = norm**2 / float(z @ q) * q * kept / share
    return share + 32 / x.size, float(((decoded - z) ** 2).sum()) / norm**2


def points(x: np.ndarray, rate: float) -> Iterator[tuple[str, str, Point]]:
    """(operator, class, point) near one rate."""
    for states in (1, 4, 8, 64):
        try:
            operator = TCDQ.for_bits(rate, states=states, like=x)
        except ValueError:
            continue
        yield f"tcdq, {states} states", "unbiased", measured(operator, x)
    yield "qsgd_entropy", "unbiased", qsgd_entropy(x, rate)
    yield "eden", "unbiased", eden(x, rate)
    families: dict[str, tuple[Callable[[float], Operator], float, float]] = {
        "qsgd": (lambda s: QSGD(levels=max(1, round(s))), 1.0, 32_768.0),
        "qsgd dense": (lambda s: QSGD(levels=max(1, round(s)), code="dense"), 1.0, 32_768.0),
        "topk": (lambda f: TopK(fraction=f), 1e-4, 1.0),
        "sparse_dithering": (lambda v: SparseDithering(nu=1 / v), 1.001, 1e8),
    }
    for name, (build, low, high) in families.items():
        found = at_rate(build, x, rate, low, high)
        if found is not None:
            contractive = isinstance(found.claim(x.size), Contractive)
            yield name, "contractive" if contractive else "unbiased", measured(found, x)


def main(rates: tuple[float, ...] = RATES, only: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """Every vector, or those of some names, at every rate."""
    for name, wide in (*synthetic(), *gradients()):
        if only and name not in only:
            continue
        x = wide.astype(np.float32)
        zero = float((x == 0).mean())
        for rate in rates:
            for operator, kind, (bits, nmse) in points(x, rate):
                if nmse == 0:
                    continue
                limit = limit_rate(nmse, unbiased=kind == "unbiased")
                yield {
                    "source": name,
                    "d": x.size,
                    "zero_share": round(zero, 4),
                    "rate": rate,
                    "operator": operator,
                    "class": kind,
                    "bits": round(bits, 5),
                    "nmse": float(f"{nmse:.5g}"),
                    "gap": round(bits - limit, 4),
                }
