"""The vectors on which laws are tried: the extremal ones of the known proofs, and gradient-shaped random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import sqrt
from typing import Any

import numpy as np
import torch

from bounds.fields import Fields

from ...inputs import LARGEST, SMALLEST
from ..betting.budget import work_s

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


def pairs(n: int, rng: np.random.Generator, zeros: int = 0) -> Iterator[Example]:
    """Return n vectors (1, t), or (1, t, 0, ...), in any order: one coordinate sweeps its range."""
    for t in rng.permutation((np.arange(n) + rng.random(n)) / n):
        yield _example(f"(1, {t:.4f})", np.array([1.0, t * rng.choice([-1.0, 1.0]), *[0.0] * zeros]))


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


# -- The vectors on which the exact laws try a function: the most telling first, until the time is over --------

RAMPS = 3
LEAST, MOST = 2, 20  # vectors: however long they take, and however much time there is


def function_examples(sizes: Iterable[int], long: Iterable[int], rng: np.random.Generator) -> Iterator[Example]:
    """Return ramps, vectors drawn from the largest of ``sizes`` on, structured ones, and one at each of ``long``."""
    descending = sorted(sizes, reverse=True)
    for d in descending[:1]:
        yield from drawn(d, 1, rng)
        yield from ramps(d, RAMPS, rng)
    for d in descending:
        yield from drawn(d, 2, rng)
    most = max(descending, default=0)
    for d in (size for size in long if size > most):
        yield from drawn(d, 1, rng)
    yield from chain.from_iterable(structured(d) for d in descending[:1])


def in_turn(*examples: Iterator[Example]) -> Iterator[Example]:
    """Return the next example of each, until all are over: what takes long to try is cut by the clock for all alike."""
    for row in zip_longest(*examples):
        yield from (example for example in row if example is not None)


def in_time(examples: Iterator[Example], seconds: float, most: float = MOST) -> Iterator[Example]:
    """Return the examples until the seconds are over: at least LEAST of them, and at most ``most``."""
    end = work_s() + seconds
    for number, example in enumerate(examples):
        if number >= most or (number >= LEAST and work_s() > end):
            return
        yield example


# -- The vectors that a compressor is meant for, and how the kit's vectors are made to fit ---------------------


@dataclass(frozen=True)
class Domain(Fields):
    """A set of vectors; by default all that claims are about.

    Parameters
    ----------
    smallest : float, optional
        The least ``max|x|``.
    largest : float, optional
        The greatest ``max|x|``.
    zero : bool, optional
        Whether the zero vector belongs to it.
    zeros : bool, optional
        Whether a vector may have zero entries (dead coordinates).
    multiple_of : int, optional
        Of which the length must be a multiple.
    shortest : int, optional
        The least length.
    longest : int, optional
        The greatest length.
    dtype : dtype, optional
        The type whose numbers the entries must be.

    Raises
    ------
    ValueError
        For an empty range or lengths below 1.
    """

    smallest: float = SMALLEST
    largest: float = LARGEST
    zero: bool = True
    zeros: bool = True
    multiple_of: int = 1
    shortest: int = 1
    longest: int = 1 << 40
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if not 0 < self.smallest <= self.largest / 2:
            raise ValueError(f"the range must satisfy 0 < smallest <= largest/2; got {self.smallest}, {self.largest}")
        if min(self.multiple_of, self.shortest) < 1 or self.length(1) < self.shortest:
            raise ValueError(
                f"lengths must be at least 1 and a multiple of {self.multiple_of} must lie in "
                f"[{self.shortest}, {self.longest}]"
            )

    def contains(self, x: np.ndarray) -> bool:
        """Return whether a vector, float32, shape (d,), belongs to it.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        fitted = self.fit(x)
        return fitted is not None and np.array_equal(fitted, x)

    def fit(self, x: np.ndarray) -> np.ndarray | None:
        """Return a vector of the domain that resembles x, float32; None for a zero vector where that is excluded.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        x = np.resize(x, self.length(x.size))
        if not x.any():
            return x if self.zero and self.zeros else None
        largest = float(np.abs(x).max())
        if not self.smallest <= largest <= self.largest:
            goal = np.clip(largest, self.smallest, self.largest)
            exponent = np.ceil(np.log2(goal / largest)) if goal > largest else np.floor(np.log2(goal / largest))
            x = np.ldexp(x.astype(np.float64), int(exponent))
        if self.dtype != torch.float32:
            x = torch.from_numpy(np.asarray(x, np.float64)).to(self.dtype).to(torch.float32).numpy()
        x = np.asarray(x, np.float32)
        return x if self.zeros else np.where(x == 0, np.abs(x[x != 0]).min(), x)

    def length(self, d: int) -> int:
        """Return the length of the domain's vectors that is nearest above d, or the largest.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        k = self.multiple_of
        most = self.longest // k * k
        return min(max(-(-d // k) * k, -(-self.shortest // k) * k), most)

    def of(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Return the examples made to fit, each vector once.

        Parameters
        ----------
        examples : iterable of Example
            Vectors, each of shape (d,).
        """
        if self == EVERYTHING:
            yield from examples
            return
        yielded = set()
        for example in examples:
            x = self.fit(example.x)
            if x is not None and x.tobytes() not in yielded:
                yielded.add(x.tobytes())
                yield replace(example, x=x)


EVERYTHING = Domain()
