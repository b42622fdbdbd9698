"""Kashin representations: more coefficients than coordinates, all of nearly the same size, rounded to k levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import Unbiased

from ..kernels import hadamard, kernels_for
from ..key import Key
from ..operator import Operator, Size
from ..quantisers.rotation import prescale, unscale
from ..quantisers.scale import largest, nearest, negligible
from ..random import bits32
from .k_level import KLevel, quantise
from .random_k import random_support

SIGNS, ROWS, ROUNDING = 0, 1, 2  # folds of the key
SHRINK = 0.75


@dataclass(frozen=True)
class Kashin(Operator):
    """Write x = U a with N > d coefficients a of small maximum, send a as ``KLevel`` does, decode U times it.

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
    Unbiased; rounding errors are independent and the columns of U have the square d/N, so the error is exactly d/N
    times the variance of the levels, hence omega = (d/N)^2 (N - 2)/(k - 1)^2 whatever U, and on most vectors about
    (3/2) d/N (two levels) or below 4 d/N/(k - 1)^2. 64 bits and N ceil(log2 k).
    """

    k: int = 16
    redundancy: float = 1.5
    iterations: int = 10

    name = "kashin"
    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        KLevel(self.k)
        if not 1 < self.redundancy <= 64:
            raise ValueError(f"redundancy must satisfy 1 < redundancy <= 64; got redundancy = {self.redundancy}")
        if self.iterations < 0:
            raise ValueError(f"iterations must not be negative; got iterations = {self.iterations}")

    def coefficients(self, d: int) -> int:
        """Return N.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return 1 << (math.ceil(self.redundancy * d) - 1).bit_length()

    def claim(self, d: int) -> Unbiased:
        """Return the sure bound."""
        n = self.coefficients(d)
        return Unbiased((d / n) ** 2 * (n - 2) / (self.k - 1) ** 2)

    def bits(self, d: int) -> Size:
        """Return those of KLevel with N coordinates."""
        return KLevel(self.k).bits(self.coefficients(d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return sixteen levels; two levels and twice as many coefficients."""
        return cls(), cls(2, 3.0)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        n = self.coefficients(x.size)
        if negligible(x):
            return KLevel(self.k).pack(0.0, 0.0, np.zeros(n, np.uint32))
        y, factor = prescale(x)
        a = self.represent(y, Frame(x.size, n, key))
        low, high, levels = quantise(a, self.k, bits32(key.fold_in(ROUNDING), n))
        nearest(math.sqrt(n) * max(high, -low) / factor)  # so that every decoded entry fits binary32
        ends = np.array([low / factor, high / factor]).astype(np.float32)
        if ends[0] == ends[1]:
            levels[:] = 0  # ends that differ before they are scaled back need not do so among subnormal numbers
        return KLevel(self.k).pack(float(ends[0]), float(ends[1]), levels)

    def represent(self, x: np.ndarray, frame: Frame) -> np.ndarray:
        """Return coefficients a, float32, shape (N,), with U a = x up to rounding.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        frame : Frame
            U, whose rows are orthonormal.
        """
        a = frame.transposed(x)
        best, top = a, float(largest(a))
        for _ in range(self.iterations):
            clipped = np.clip(a, np.float32(-SHRINK * top), np.float32(SHRINK * top))
            a = clipped + frame.transposed(x - frame.times(clipped))
            if largest(a) < top:
                best, top = a, float(largest(a))
        return best

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        n = self.coefficients(d)
        a = KLevel(self.k)._decode(payload, bits, n, None)
        if not a.any():
            return np.zeros(d, np.float32)
        y, factor = prescale(a)
        return unscale(Frame(d, n, key).times(y), 1 / factor)


class Frame:
    """U of a key: its rows are orthonormal, its columns have the square d/N.

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
        self.rows = random_support(key.fold_in(ROWS), d, n)
        words = torch.from_numpy(bits32(key.fold_in(SIGNS), (d + 31) // 32).astype("<u4").view(np.uint8))
        self.signs = kernels_for(words).signs.unpack(words, d).numpy()

    def times(self, a: np.ndarray) -> np.ndarray:
        """Return U a, shape (d,).

        Parameters
        ----------
        a : float32, shape (N,)
        """
        return _hadamard(a)[self.rows] * self.signs

    def transposed(self, x: np.ndarray) -> np.ndarray:
        """Return U^T x, shape (N,).

        Parameters
        ----------
        x : float32, shape (d,)
        """
        wide = np.zeros(self.n, np.float32)
        wide[self.rows] = x * self.signs
        return _hadamard(wide)


def _hadamard(a: np.ndarray) -> np.ndarray:
    """Return the orthonormal Hadamard transform of 2^n coordinates: a rotation without signs."""
    no_signs = torch.zeros(hadamard.word_count(a.size, 1), dtype=torch.int32)
    return kernels_for(no_signs).hadamard.rotate(torch.from_numpy(a), no_signs, 1).numpy()
