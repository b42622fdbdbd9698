"""One bit a coordinate and two reconstruction values a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive

from ..compilation import jit
from ..kernels import kernels_for
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..quantisers.scale import negligible

COLUMN_BITS = 64


@jit
def _means(x, length, means):
    """Per column: mean of the entries >= 0, mean magnitude of the negative ones; 0 for an empty class."""
    for c in range(means.shape[0]):
        above, below, n_below = 0.0, 0.0, 0
        stop = min(x.size, (c + 1) * length)
        for i in range(c * length, stop):
            v = np.float64(x[i])
            if v < 0:
                below -= v
                n_below += 1
            else:
                above += v
        n_above = stop - c * length - n_below
        means[c, 0] = above / n_above if n_above else 0.0
        means[c, 1] = below / n_below if n_below else 0.0


@jit
def _rebuild(signs, length, means, out):
    """Fill ``out`` from signs +1 and -1; False if a column's means do not fit its signs."""
    for c in range(means.shape[0]):
        start, stop = c * length, min(out.size, (c + 1) * length)
        plus, minus, n_below = means[c, 0], means[c, 1], 0
        for i in range(start, stop):
            below = signs[i] < 0
            n_below += below
            out[i] = -minus if below else plus
        if (n_below > 0) != (minus > 0) or (n_below == stop - start and plus > 0):
            return False  # an empty class has mean 0
    return True


@dataclass(frozen=True)
class OneBitSGD(Operator):
    """Send the sign of each entry and, per column, the mean of its non-negative and of its negative entries.

    Parameters
    ----------
    x
        Float tensor, shape (d,); 0 and -0 count as non-negative; an empty class has mean 0.
    shape : tuple of int or None, optional
        (rows, columns) of x in C order; None cuts x into runs of ceil(sqrt(d)) entries as columns.

    Raises
    ------
    ValueError
        If shape does not hold d entries.

    Notes
    -----
    Strictly contractive with alpha = 1 - 1/n, n entries in the longest column, reached by a one-hot column; per column
    ``1 - alpha = (S+^2/n+ + S-^2/n-)/|x|^2 >= |x|_1^2/(n |x|^2)`` by Cauchy-Schwarz (algorithm: Seide et al. 2014, with
    error feedback). d bits and 64 a column.
    """

    shape: tuple[int, int] | None = None

    name = "one_bit_sgd"
    randomness = "none"
    projects = True
    equivariant = frozenset({"scale", "sign"})

    def column(self, d: int) -> int:
        """Return entries of the longest column.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        if self.shape is None:
            return math.isqrt(d - 1) + 1
        rows, columns = self.shape
        if rows * columns != d:
            raise ValueError(f"shape must hold d = {d} entries; got shape = {self.shape}")
        return rows

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 1 - 1/n for columns of n entries."""
        return StrictlyContractive(1 - 1 / self.column(d))

    def bits(self, d: int) -> Size:
        """Return one bit an entry, two binary32 numbers a column."""
        return Size.fixed(d + COLUMN_BITS * -(-d // self.column(d)))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return near-square columns."""
        return (cls(),)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        length = self.column(x.size)
        if negligible(x):
            x = np.zeros_like(x)
        if self.shape is not None:
            x = np.ascontiguousarray(x.reshape(self.shape).T).reshape(-1)
        means = np.zeros((-(-x.size // length), 2), np.float32)
        _means(x, length, means)
        vector, head = torch.from_numpy(x), means.astype(">f4").reshape(-1).view(np.uint8)
        return np.concatenate([head, kernels_for(vector).signs.pack(vector).numpy()]), self._length(x.size)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != self._length(d):
            raise CorruptMessage(f"one_bit_sgd sends {self._length(d)} bits at d = {d}; got {bits}")
        length = self.column(d)
        columns = -(-d // length)
        means = payload[: 8 * columns].view(">f4").astype(np.float32).reshape(columns, 2)
        if not np.isfinite(means).all() or np.signbit(means).any():
            raise CorruptMessage("the means of a column must be finite and not negative")
        out = np.empty(d, np.float32)
        bits_of_signs = torch.from_numpy(payload[8 * columns :])
        negative = kernels_for(bits_of_signs).signs.unpack(bits_of_signs, d).numpy()
        if not _rebuild(negative, length, means, out):
            raise CorruptMessage("a column's means do not fit its signs")
        return out if self.shape is None else np.ascontiguousarray(out.reshape(self.shape[::-1]).T).reshape(-1)

    def _length(self, d: int) -> int:
        return d + COLUMN_BITS * -(-d // self.column(d))
