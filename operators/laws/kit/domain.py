"""The vectors that a compressor is meant for, and how the kit's vectors are made to fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from bounds.fields import Fields

from ...inputs import LARGEST, SMALLEST
from .examples import Example


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
