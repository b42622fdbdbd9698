"""What ranks add up: numbers in binary32, or words of a few bits modulo a power of two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..exchange.ordered_mean import add_rows


@dataclass(frozen=True, eq=False)
class Terms(ABC):
    """One rank's summands, shape (n,), and how they are written.

    Parameters
    ----------
    values : ndarray
        The summands.
    """

    values: np.ndarray

    @property
    @abstractmethod
    def width(self) -> int:
        """Bits of a summand, and of a sum."""

    @abstractmethod
    def pack(self, values: np.ndarray) -> np.ndarray:
        """Return ceil(n width / 8) bytes, zero-padded.

        Parameters
        ----------
        values : ndarray
            Summands or sums, shape (n,).
        """

    @abstractmethod
    def unpack(self, payload: np.ndarray, n: int) -> np.ndarray:
        """Return the numbers that ``pack`` wrote.

        Parameters
        ----------
        payload : ndarray
            Its bytes.
        n : int
            How many numbers.
        """

    @abstractmethod
    def add(self, total: np.ndarray, rows: np.ndarray) -> None:
        """Add the summands of some ranks to a sum that began as zeros of ``exact``.

        Parameters
        ----------
        total : ndarray, shape (n,)
            The sum so far; it is changed.
        rows : ndarray, shape (b, n)
            Summands in rank order.
        """

    @abstractmethod
    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return a sum as ``pack`` takes it.

        Parameters
        ----------
        total : ndarray, shape (n,)
            All summands, added.
        """

    @property
    @abstractmethod
    def exact(self) -> type[np.generic]:
        """The type in which summands are added."""

    def total(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Return the sum of the ranks' summands as ``pack`` takes it.

        Parameters
        ----------
        rows : sequence of ndarray
            In rank order, each of shape (n,).
        """
        total = np.zeros(rows[0].size, self.exact)
        for row in rows:
            self.add(total, row[None])
        return self.finish(total)

    def nbytes(self, n: int) -> int:
        """Return the length of n packed numbers.

        Parameters
        ----------
        n : int
            How many numbers.
        """
        return (n * self.width + 7) // 8


@dataclass(frozen=True, eq=False)
class Floats(Terms):
    """Numbers in binary32: their sum is taken in rank order in float64 and rounded once.

    Parameters
    ----------
    values : ndarray, float32
        The summands.
    """

    @property
    def width(self) -> int:
        """Bits of binary32."""
        return 32

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Return the bytes of binary32, most significant first."""
        return np.frombuffer(values.astype(">f4").tobytes(), np.uint8)

    def unpack(self, payload: np.ndarray, n: int) -> np.ndarray:
        """Return float32 numbers."""
        return np.frombuffer(payload.tobytes(), ">f4").astype(np.float32)

    @property
    def exact(self) -> type[np.generic]:
        """Type in which summands are added, float64."""
        return np.float64

    def add(self, total: np.ndarray, rows: np.ndarray) -> None:
        """Add in rank order."""
        add_rows(total, rows)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the float32 sum, infinite where it exceeds binary32."""
        with np.errstate(over="ignore"):
            return total.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Words(Terms):
    """Integers modulo 2^bits: a sum that does not fit wraps round, as in the adders of a network.

    Parameters
    ----------
    values : ndarray, int64
        The summands, of either sign.
    bits : int
        Of a word, 1 .. 32.
    """

    bits: int

    @property
    def width(self) -> int:
        """Those of a word."""
        return self.bits

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Return the words modulo 2^bits without gaps."""
        return pack_fixed((values & ((1 << self.bits) - 1)).astype(np.uint32), self.bits)

    def unpack(self, payload: np.ndarray, n: int) -> np.ndarray:
        """Return the integers from 0 to 2^bits - 1, int64."""
        return unpack_fixed(payload, self.bits, n).astype(np.int64)

    @property
    def exact(self) -> type[np.generic]:
        """Type in which summands are added, int64."""
        return np.int64

    def add(self, total: np.ndarray, rows: np.ndarray) -> None:
        """Add the integers."""
        total += rows.sum(axis=0)

    def finish(self, total: np.ndarray) -> np.ndarray:
        """Return the sum modulo 2^bits, int64."""
        return total & ((1 << self.bits) - 1)

    def signed(self, words: np.ndarray) -> np.ndarray:
        """Return the integers of least magnitude with these words: -2^(bits - 1) .. 2^(bits - 1) - 1.

        Parameters
        ----------
        words : ndarray
            What ``total`` gave.
        """
        half = 1 << (self.bits - 1)
        return ((words + half) & ((1 << self.bits) - 1)) - half
