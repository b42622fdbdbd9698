"""The vectors on which laws are tried: the extremal ones of the known proofs, and gradient-shaped random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ...inputs import LARGEST, SMALLEST

WITNESS = "declared witness"
REACHED = 0.95  # share of the claimed constant that must be reached at a declared witness


@dataclass(frozen=True, eq=False)
class Example:
    """A named input: float32, shape (d,), finite."""

    name: str
    x: np.ndarray

    @property
    def d(self) -> int:
        """Dimension."""
        return self.x.size


def structured(d: int) -> Iterator[Example]:
    """Return the extremal vectors of the concave-majorant proofs and the usual troublemakers at dimension d."""
    i = np.arange(d)
    yield _example("flat", np.ones(d))
    yield _example("one-hot, last", i == d - 1)
    yield _example("one-hot, negative", -1.0 * (i == 0))
    yield _example("alternating signs, ramp", (-1.0) ** i * (i + 1) / d)
    yield _example("all negative", -1.0 - i % 3)
    if d > 1:
        yield _example("pair (1, 1/2, 0, ...)", np.where(i == 0, 1, 0.5 * (i == 1)))
        yield _example("pair (1, -1, 0, ...)", np.where(i == 0, 1, -1.0 * (i == 1)))
        yield _example("one large, rest 1/(1 + sqrt d)", np.where(i == 0, 1, 1 / (1 + sqrt(d))))
        yield _example("geometric", (-0.5) ** np.minimum(i, 60))
        yield _example("two scales", np.where(i % 2, 1e-3, 1.0))
        yield _example("half zeros, some negative zero", np.where(i % 2, -0.0, 1.0 + i / d))


def distinct(examples: Iterable[Example]) -> Iterator[Example]:
    """Return each vector once, under its first name: at d = 1 most structured ones are alike."""
    yielded = set()
    for example in examples:
        if example.x.tobytes() not in yielded:
            yielded.add(example.x.tobytes())
            yield example


def drawn(d: int, n: int, rng: np.random.Generator) -> Iterator[Example]:
    """Return n random vectors at dimension d, the laws taken in turn: Gaussian, Cauchy, sparse, ties, log-uniform."""
    for j in range(n):
        match j % 5:
            case 0:
                yield _example("Gaussian", rng.standard_normal(d))
            case 1:
                yield _example("Cauchy", np.clip(rng.standard_cauchy(d), -1e6, 1e6))
            case 2:
                yield _example("sparse", rng.standard_normal(d) * (rng.random(d) < 0.3))
            case 3:
                yield _example("ties", rng.integers(-2, 3, d))
            case _:
                yield _example("log-uniform", rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(-6, 2, d))


def ramps(d: int, n: int, rng: np.random.Generator) -> Iterator[Example]:
    """Return n vectors whose entries sweep the range below the largest, evenly, and one over many scales.

    Together the first ones have n d values: a single wrong entry of a table is met.
    """
    for j in range(n + 1):
        values = (np.arange(d) + rng.random(d)) / d if j < n else 2.0 ** (-20 * np.arange(d) / d - rng.random(d))
        values[int(values.argmin())] = 1.0
        yield _example("ramp" if j < n else "ramp of scales", rng.permutation(values * rng.choice([-1.0, 1.0], d)))


def pairs(n: int, rng: np.random.Generator) -> Iterator[Example]:
    """Return n vectors (1, t, 0): one coordinate sweeps its range."""
    for t in (np.arange(n) + rng.random(n)) / n:
        yield _example(f"(1, {t:.4f}, 0)", np.array([1.0, t * rng.choice([-1.0, 1.0]), 0.0]))


def at_the_ends(d: int) -> Iterator[Example]:
    """Return a vector scaled so that its largest magnitude is exactly 2^100 or 2^-126, the ends of the
    claims' range.
    """
    shape = np.where(np.arange(d) == 0, 1.0, -0.375)
    yield _example("largest magnitude 2^100", LARGEST * shape)
    yield _example("largest magnitude 2^-126", SMALLEST * shape)


def witnesses(target: Any, sizes: Iterable[int]) -> Iterator[Example]:
    """Return the vectors at which a subject says that its constant is reached (``witness(d)``)."""
    if not hasattr(target, "witness"):
        return
    for d in sizes:
        x = target.witness(d)
        if x is not None:
            yield Example(f"{WITNESS}, d = {d}", np.asarray(x, np.float32))


def _example(name: str, x: np.ndarray) -> Example:
    x = np.asarray(x, np.float32)
    return Example(f"{name}, d = {x.size}", x if x.any() else np.ones_like(x))
