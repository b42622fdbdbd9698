"""The groups of vectors on which an exchange is tried: what a wrong sum gets wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from bounds.claims import UnbiasedMean

from ..kit.examples import Example

HUGE, TINY = 1000.0, 2.0**-10
LEAST_MEAN = 0.25  # of what the mean of independent vectors has; below it a share of the mean is no measure


@dataclass(frozen=True, eq=False)
class Group(Example):
    """One vector a worker.

    Parameters
    ----------
    vectors : ndarray
        float32, shape (m, d); ``x`` is their mean.
    """

    vectors: np.ndarray

    @property
    def m(self) -> int:
        """Number of workers."""
        return len(self.vectors)

    @property
    def wide_mean(self) -> np.ndarray:
        """The mean in float64, shape (d,)."""
        return self.vectors.astype(np.float64).mean(axis=0)

    @property
    def mean_square(self) -> float:
        """S, the mean of the squared lengths."""
        return float((self.vectors.astype(np.float64) ** 2).sum(axis=1).mean())

    @property
    def has_mean(self) -> bool:
        """Whether the mean is not the rest of a cancellation."""
        return float((self.wide_mean**2).sum()) >= LEAST_MEAN * self.mean_square / self.m

    @property
    def scale(self) -> float:
        """Unit of errors, the length of the mean; where it has cancelled, the root of S."""
        return float(np.linalg.norm(self.wide_mean)) if self.has_mean else sqrt(self.mean_square)

    @property
    def direction(self) -> np.ndarray:
        """Unit vector along the mean, or along the first worker's vector where the mean has cancelled."""
        along = self.wide_mean if self.has_mean else self.vectors[0].astype(np.float64)
        return along / np.linalg.norm(along)

    def second_moment(self, claim: UnbiasedMean) -> float:
        """Return the claimed bound of the squared error over the squared scale.

        Parameters
        ----------
        claim : UnbiasedMean
            At this m and d.
        """
        square_of_mean = float((self.wide_mean**2).sum())
        return (claim.of_squares * self.mean_square + claim.of_mean * square_of_mean) / self.scale**2


def sizes_for(m: int) -> tuple[int, ...]:
    """Return dimensions: 1, below m, not divisible by m, and one with shards of several coordinates.

    Parameters
    ----------
    m : int
        Number of workers.
    """
    return tuple(sorted({1, max(1, m - 1), 2 * m + 1, max(8 * m, 65)}))


def groups(m: int, sizes: tuple[int, ...], rng: np.random.Generator) -> Iterator[Group]:
    """Return the groups of m workers at every size.

    Parameters
    ----------
    m : int
        Number of workers.
    sizes : tuple of int
        Dimensions.
    rng : Generator
        Draws the vectors.
    """
    for d in sizes:
        x = rng.standard_normal(d)
        yield _group("equal Gaussian vectors", np.tile(x, (m, 1)))
        if d > 1:
            yield _group("equal flat vectors", np.ones((m, d)))
            yield _group("equal vectors of many scales", np.tile(x * 2.0 ** (-8 * np.arange(d) / d), (m, 1)))
            yield _group("equal one-hot vectors, last", np.tile(np.arange(d) == d - 1, (m, 1)))
        if m == 1:
            continue
        yield _group("independent Gaussian vectors", rng.standard_normal((m, d)))
        for rank in (0, m - 1):
            yield _group(f"a vector at rank {rank} only", (np.arange(m) == rank)[:, None] * x)
        opposite = rng.standard_normal((m, d))
        opposite[0], opposite[1] = HUGE * x, -HUGE * x
        yield _group("two huge opposite vectors among others", opposite)
        if m > 2:
            yield _group(
                "one huge vector, last", np.where(np.arange(m)[:, None] == m - 1, HUGE * x, opposite[1] * TINY)
            )
    scaled = rng.standard_normal((m, sizes[-1]))
    yield _group("independent Gaussian vectors times 2^60", scaled * 2.0**60)
    yield _group("independent Gaussian vectors times 2^-60", scaled * 2.0**-60)


def _group(name: str, vectors: np.ndarray) -> Group:
    rows = vectors.astype(np.float32)
    mean = rows.astype(np.float64).mean(axis=0).astype(np.float32)
    return Group(f"{name}, m = {len(rows)}, d = {rows.shape[1]}", mean, rows)
