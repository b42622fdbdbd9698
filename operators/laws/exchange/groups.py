"""The groups of vectors on which an exchange is tried: what a wrong sum gets wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch

from bounds.claims import UnbiasedMean

from ...functions.forms import name_of
from ...key import Key
from ..adapt import Library
from ..kit.examples import Example
from ..kit.law import Violation, fail_if
from ..kit.statistical import Draws, Source

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
    """Return dimensions: 1, below m, below 2 m, not divisible by m, and one with shards of several coordinates.

    Parameters
    ----------
    m : int
        Number of workers.
    """
    return tuple(sorted({1, max(1, m - 1), 3 * m // 2, 2 * m + 1, max(8 * m, 65)}))


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


# -- An outsider's all-reduce as the kit calls it: m vectors in, the common result out -------------------------


class MeanFunction:
    """Calls a function of m vectors, and sees to it that all ranks have one result.

    Parameters
    ----------
    function : callable
        From a list of m tensors of shape (d,) (``library="torch"``) or an array of shape (m, d) ("numpy"), float32, to
        m results, or to one of shape (d,).  If it takes ``key``, it gets a ``Key`` whose step counts the calls.
    library : Library
        "torch" or "numpy".
    seed : int
        Of the keys.

    Raises
    ------
    TypeError
        For what cannot be called.
    ValueError
        For an unknown library.
    """

    def __init__(self, function: Callable[..., Any], library: Library, seed: int) -> None:
        if isinstance(function, type) or not callable(function):
            raise TypeError(f"expected a function from m vectors to their mean; got {function!r}")
        if library not in ("torch", "numpy"):
            raise ValueError(f'library must be "torch" or "numpy"; got {library!r}')
        self.function, self.library, self.seed = function, library, seed
        self.name = name_of(function)
        self.takes_key = "key" in inspect.signature(function).parameters
        self.step = 0

    def mean(self, vectors: np.ndarray) -> np.ndarray:
        """Return the result of the next step: float64, shape (d,).

        Parameters
        ----------
        vectors : ndarray
            float32, shape (m, d).

        Raises
        ------
        Violation
            If ranks end with different bits, or with a result of another shape or a non-finite one.
        """
        rows = self.rows(self.call(self.given(vectors)), *vectors.shape)
        if not np.isfinite(rows).all():
            raise Violation(f"the result of {len(vectors)} finite vectors has an entry that is not finite")
        return rows[0].astype(np.float64)

    def call(self, given: Any, step: int | None = None) -> Any:
        """Return the output of the function, at the next step or at a given one.

        Parameters
        ----------
        given
            What ``given`` returned.
        step : int or None, optional
            Of the key.
        """
        if not self.takes_key:
            return self.function(given)
        if step is None:
            step, self.step = self.step, self.step + 1
        return self.function(given, key=Key(self.seed, step=step))

    def given(self, vectors: np.ndarray) -> Any:
        """Return the vectors as the function takes them: its own copies.

        Parameters
        ----------
        vectors : ndarray
            float32, shape (m, d).
        """
        return vectors.copy() if self.library == "numpy" else [torch.from_numpy(row.copy()) for row in vectors]

    def rows(self, output: Any, m: int, d: int) -> np.ndarray:
        """Return the results of the ranks, shape (m, d), or (1, d) where one is returned; bits that are all alike.

        Parameters
        ----------
        output
            What the function returned.
        m : int
            Number of workers.
        d : int
            Dimension.

        Raises
        ------
        Violation
            For another shape, and for ranks with different bits.
        """
        several = isinstance(output, list | tuple)
        rows = np.stack([_array(r) for r in output]) if several and _alike(output) else _array(output)
        rows = rows[None] if rows.ndim == 1 and not several else rows
        if rows.shape not in ((m, d), (1, d)):
            raise Violation(f"{m} vectors of {d} coordinates give results of shape {rows.shape}")
        bits = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
        different = np.flatnonzero((bits != bits[0]).any(axis=1))
        if different.size:
            raise Violation(f"ranks 0 and {different[0]} of {m} end with different bits at d = {d}")
        return rows


def _alike(output: Any) -> bool:
    """Return whether the results have one shape; raise where they have not."""
    shapes = {tuple(_array(r).shape) for r in output}
    fail_if(len(shapes) > 1, f"the ranks' results have different shapes: {sorted(shapes)}")
    return bool(shapes)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.array(value)


# -- Draws of an exchange: errors of the mean over the group's scale, step after step --------------------------


class MeanSource(Source):
    """Fresh results of an exchange: every draw is a step of its own."""

    def __init__(self, function: MeanFunction) -> None:
        self.function = function

    def draw(self, example: Example, n: int) -> Draws:
        """Return n draws: ``(y - xbar)/scale``, shape (n, d)."""
        assert isinstance(example, Group)
        results = np.stack([self.function.mean(example.vectors) for _ in range(n)])
        return Draws((results - example.wide_mean) / example.scale, np.zeros(n))
