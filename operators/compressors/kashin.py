"""Kashin representations: more coefficients than coordinates, all of similar magnitude, rounded to k levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..compilation import jit
from ..kernels.hadamard.cpu import transform
from ..key import Key
from ..operator import Operator, Size
from ..quantisers.rotation import prescale, unscale
from ..quantisers.scale import largest, nearest, negligible
from ..random import bits32
from .k_level import KLevel
from .random_k import random_bits

SIGNS, ROWS, ROUNDING = 0, 1, 2  # folds of the key
SHRINK = 0.75


@dataclass(frozen=True)
class Kashin(Operator):
    """Write x = U a with N > d coefficients a of small maximum; send a as ``KLevel`` does and decode U a.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  U takes d random rows of the orthonormal Hadamard matrix of order N and multiplies
        them by random signs.  Every iterate is exact and the one with the least maximum is kept; the first is U^T x, so
        ``max|a| <= sqrt(d/N) |x|`` surely.  Ten iterations measure ``max|a| = 2 |x|/sqrt(N)``, where one rotation has
        ``sqrt(2 ln N) |x|/sqrt(N)`` and the iteration of Lyubarskii and Vershynin (2010) gains nothing at such N.
    k : int, optional
        Levels, 2 .. 65536.
    redundancy : float, optional
        > 1; N is the least power of two that is at least redundancy d.
    iterations : int, optional
        >= 0, of clipping a to ``SHRINK`` times the least maximum so far and projecting back on U a = x.

    Raises
    ------
    ValueError
        For parameters out of range, or an end beyond binary32.

    Notes
    -----
    Unbiased.  Rounding errors are independent and the columns of U have the square d/N, so the error is exactly d/N
    times the variance of the levels.  Hence omega = (d/N)^2 (N - 2)/(k - 1)^2 whatever U.  On most vectors it is about
    (3/2) d/N (two levels) or below 4 d/N/(k - 1)^2.  A message has 64 bits and N ceil(log2 k).
    """

    k: int = 16
    redundancy: float = 1.5
    iterations: int = 10

    name = "kashin"
    sources = ("lyubarskii2010",)
    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        KLevel(self.k)
        if not 1 < self.redundancy <= 64:
            raise ValueError(f"redundancy must satisfy 1 < redundancy <= 64; got redundancy = {self.redundancy}")
        if self.iterations < 0:
            raise ValueError(f"iterations must not be negative; got iterations = {self.iterations}")

    def coefficients(self, d: int) -> int:
        """Return the number N of coefficients.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return 1 << (math.ceil(self.redundancy * d) - 1).bit_length()

    def claim(self, d: int) -> Unbiased:
        """Return the bound that holds for every U."""
        n = self.coefficients(d)
        return Unbiased((d / n) ** 2 * (n - 2) / (self.k - 1) ** 2)

    def bits(self, d: int) -> Size:
        """Return the bits of KLevel with N coordinates."""
        return KLevel(self.k).bits(self.coefficients(d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(2, 3.0)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        n = self.coefficients(x.size)
        if negligible(x):
            return KLevel(self.k)._encode(np.zeros(n, np.float32), key)
        y, factor = prescale(x)
        a = self.represent(y, Frame(x.size, n, key))
        nearest(math.sqrt(n) * float(largest(a)) / factor)  # so that every decoded entry fits binary32
        return KLevel(self.k).round_stochastically(a, factor, key.fold_in(ROUNDING))

    def represent(self, x: np.ndarray, frame: Frame) -> np.ndarray:
        """Return coefficients a, float32, shape (N,), with U a = x up to rounding.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        frame : Frame
            U, whose rows are orthonormal.
        """
        a, best = self._iterate(x, frame, self.iterations)
        return a if best == self.iterations else self._iterate(x, frame, best)[0]

    def _iterate(self, x: np.ndarray, frame: Frame, iterations: int) -> tuple[np.ndarray, int]:
        """Return (the last iterate, number of the best one).

        Repeating the best iteration is cheaper than storing every iterate.  U^T spreads the residual of clipping.  H is
        its own inverse: H a with x in the chosen rows, times H, does the same in one array.
        """
        a = frame.transposed(x)
        top, best = float(largest(a)), 0
        for number in range(1, iterations + 1):
            np.clip(a, np.float32(-SHRINK * top), np.float32(SHRINK * top), out=a)
            frame.put(x, transform(a, a))
            transform(a, a)
            if float(largest(a)) < top:
                top, best = float(largest(a)), number
        return a, best

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        n = self.coefficients(d)
        a = KLevel(self.k)._decode(payload, bits, n, None)
        if not a.any():
            return np.zeros(d, np.float32)
        y, factor = prescale(a)
        return unscale(Frame(d, n, key).times(y), 1 / factor)


class Frame:
    """Tight frame U of a key: orthonormal rows, columns of squared norm d/N.

    Parameters
    ----------
    d : int
        Number of coordinates.
    n : int
        Number N of coefficients.
    key : Key
        Stream of random numbers.
    """

    def __init__(self, d: int, n: int, key: Key) -> None:
        self.d, self.n = d, n
        self.rows = np.empty(n, np.int8)  # the sign of the coordinate of a chosen row, 0 for the others
        signs = bits32(key.fold_in(SIGNS), (d + 31) // 32).astype("<u4", copy=False).view(np.uint8)
        _signed_rows(random_bits(key.fold_in(ROWS), d, n), signs, self.rows)

    def times(self, a: np.ndarray) -> np.ndarray:
        """Return U a, shape (d,), in the memory of a.

        Parameters
        ----------
        a : float32, shape (N,)
            Overwritten, and cut to d entries.
        """
        _gather(self.rows, self.d, transform(a, a))
        a.resize(self.d, refcheck=False)
        return a

    def put(self, x: np.ndarray, wide: np.ndarray) -> None:
        """Write x, with its signs, to the places of the chosen rows.

        Parameters
        ----------
        x : float32, shape (d,)
        wide : float32, shape (N,)
            Changed there.
        """
        _put(self.rows, x, wide)

    def transposed(self, x: np.ndarray) -> np.ndarray:
        """Return U^T x, shape (N,).

        Parameters
        ----------
        x : float32, shape (d,)
        """
        wide = np.zeros(self.n, np.float32)
        self.put(x, wide)
        return transform(wide, wide)


@jit
def _signed_rows(bits, signs, rows):
    """Fill ``rows`` with the sign of the coordinate, +1 or -1, at each set bit; signs are read highest first."""
    j, last = np.uint64(0), np.uint64(signs.size - 1)
    for i in range(np.uint64(rows.size)):
        row = np.int32((bits[i >> np.uint64(3)] >> np.uint8(i & np.uint64(7))) & np.uint8(1))
        minus = np.int32(signs[min(j >> np.uint64(3), last)] >> np.uint8(~j & np.uint64(7))) & row
        rows[i] = np.int8(row - 2 * minus)
        j += np.uint64(row)


@jit
def _gather(rows, d, wide):
    """Move the chosen coefficients, with their signs, to the front; unchosen ones are overwritten."""
    i, j = np.uint64(0), np.uint64(0)
    while j < np.uint64(d):
        wide[j] = wide[i] * np.float32(rows[i])
        j += np.uint64(rows[i] & np.int8(1))
        i += np.uint64(1)


@jit
def _put(rows, x, wide):
    """Write the entries of x, with their signs, to the chosen places, without branches."""
    j, last = np.uint64(0), np.uint64(x.size - 1)
    for i in range(np.uint64(wide.size)):
        row = np.float32(rows[i])
        wide[i] = wide[i] * (np.float32(1) - row * row) + x[min(j, last)] * row
        j += np.uint64(rows[i]) & np.uint64(1)
