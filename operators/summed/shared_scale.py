"""Integers of one scale for all ranks, rounded at random and summed modulo 2^k without overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased, UnbiasedMean

from ..key import Key
from ..random import uniform_of_rows
from .summed import Floats, SummedByRows, Sums, Terms, Words

MOST_BITS = 24
ROUNDED_UP = 1 + 2.0**-20  # the sum of the peaks is rounded to binary32: the scale must not fall short of it


@dataclass(frozen=True)
class SharedScale(SummedByRows):
    """Sum the largest magnitudes, A; then sum ``floor(x_i/h + u)`` in words of k bits, h = A/(2^(k-1) - m).

    Parameters
    ----------
    word_bits : int, optional
        k, 2 .. 24, of a summand and of the sum, with 2^(k-1) > m.
    block : int or None, optional
        Coordinates that share a scale; all of them if None.

    Raises
    ------
    ValueError
        For other numbers, and for too many ranks.

    Notes
    -----
    The scheme of IntSGD and THC with an exact claim.  u is uniform on [0, 1), so that the rounding is unbiased.  No sum
    overflows: each summand is less than 1 away from x_i/h, and every coordinate of sum ``|x_i|`` is at most A, so that
    the sum's magnitude is below A/h + m = 2^(k-1).  One rounding has variance f (1 - f) h^2 <= h^2/4, f the fractional
    part of x_i/h; they are independent, and A^2 <= m^2 S in a block, whence ``E|y - xbar|^2 <= n m S/(4 (2^(k-1) -
    m)^2)`` with n the length of a block (``bounds.theorems.shared_scale_error`` at the peak ratio of the vectors).
    ``square_error`` is the exact value.  32 bits per block and k bits per coordinate are summed.
    """

    word_bits: int = 8
    block: int | None = None

    name = "shared_scale"

    def __post_init__(self) -> None:
        if not 2 <= self.word_bits <= MOST_BITS:
            raise ValueError(f"word_bits must satisfy 2 <= word_bits <= {MOST_BITS}; got word_bits = {self.word_bits}")
        if self.block is not None and self.block < 1:
            raise ValueError(f"block must be at least 1, or None; got block = {self.block}")

    def terms(self, x: np.ndarray, sums: Sequence[Sums], *, keys: Sequence[Key], m: int) -> tuple[Terms, ...]:
        """Return the peaks, then the integers."""
        room, blocks = self._room(m), self._blocks(x.shape[1])
        if not sums:
            return (Floats(np.maximum.reduceat(np.abs(x), blocks[:-1], axis=1)),)
        if len(sums) == 1:
            return (Words(rounded_rows(x, self._steps(sums[0], room, blocks), keys), self.word_bits),)
        return ()

    def mean(self, sums: Sequence[Sums], *, d: int, m: int) -> np.ndarray:
        """Return the sum of the integers times the scale, over the number of members."""
        peaks, total = sums
        words = Words(total.values[0], self.word_bits)
        h = self._steps(peaks, self._room(m), self._blocks(d))
        return (words.signed(total.values[0]) * (h / total.members)).astype(np.float32)

    def bits_of_rounds(self, d: int, m: int) -> tuple[int, ...]:
        """Return a peak a block, and a word a coordinate."""
        return 32 * -(-d // (self.block or d)), self.word_bits * d

    def claim_mean(self, d: int, m: int) -> UnbiasedMean:
        """Return ``n m S/(4 (2^(k-1) - m)^2)``."""
        n = min(d, self.block or d)
        return UnbiasedMean(n * m * ROUNDED_UP**2 / (4 * self._room(m) ** 2))

    def claim(self, d: int, m: int) -> Unbiased:
        """Return m times the joint factor: a part is h times the rank's integers, whose errors are independent.

        ``E|y_i - x_i|^2`` <= n h^2/4 for each, and A^2 <= m^2 S bounds h by all ranks together, not by one.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        return Unbiased(m * self.claim_mean(d, m).of_squares)

    def square_error(self, vectors: Sequence[np.ndarray]) -> float:
        """Return ``E|y - xbar|^2``, exactly but for the rounding of the result.

        Parameters
        ----------
        vectors : sequence of ndarray
            One of every rank, float32, shape (d,).
        """
        m, blocks = len(vectors), self._blocks(vectors[0].size)
        peaks = sum(np.maximum.reduceat(np.abs(x), blocks[:-1]).astype(np.float64) for x in vectors)
        h = np.repeat(self._scale(np.asarray(peaks), self._room(m)), np.diff(blocks))
        parts = np.stack([_over(x, h) % 1 for x in vectors])
        return float((parts * (1 - parts) * h**2).sum()) / m**2

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Eight bits of one scale, and twelve with a scale for every 32 coordinates."""
        return cls(), cls(12, block=32)

    def _room(self, m: int) -> int:
        """Return the largest sum of magnitudes in steps of the scale."""
        room = (1 << (self.word_bits - 1)) - m
        if room < 1:
            raise ValueError(
                f"word_bits must satisfy 2^(word_bits - 1) > m; got word_bits = {self.word_bits} for m = {m} ranks"
            )
        return room

    def _blocks(self, d: int) -> np.ndarray:
        return np.append(np.arange(0, d, self.block or d), d)

    def _steps(self, peaks: Sums, room: int, blocks: np.ndarray) -> np.ndarray:
        """Return the scale h of every coordinate."""
        if not np.isfinite(peaks.values[0]).all():
            raise ValueError("the sum of the ranks' largest magnitudes exceeds binary32: scale the vectors down")
        return np.repeat(self._scale(peaks.values[0], room), np.diff(blocks))

    @staticmethod
    def _scale(peaks: np.ndarray, room: int) -> np.ndarray:
        return peaks.astype(np.float64) * (ROUNDED_UP / room)


def _over(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return x/h in float64, 0 where h is 0."""
    return np.divide(x, h, out=np.zeros(x.shape), where=h > 0, dtype=np.float64)


def rounded(x: np.ndarray, h: np.ndarray, key: Key) -> np.ndarray:
    """Return one of the two integers around every x/h, without bias: int64, shape (d,).

    Parameters
    ----------
    x : ndarray, shape (d,)
        A rank's vector.
    h : ndarray, shape (d,)
        The scale of every coordinate, 0 where all ranks have zeros.
    key : Key
        The rank's own stream.
    """
    return rounded_rows(x[None], h, [key])[0]


def rounded_rows(x: np.ndarray, h: np.ndarray, keys: Sequence[Key]) -> np.ndarray:
    """Return ``rounded`` of the vectors of some ranks: int64, shape (b, d).

    Parameters
    ----------
    x : ndarray, shape (b, d)
        One vector per row.
    h : ndarray, shape (d,)
        The scale of every coordinate.
    keys : sequence of Key
        One stream per row.
    """
    return np.floor(_over(x, h) + uniform_of_rows(keys, x.shape[1])).astype(np.int64)
