"""The contract of a compressor whose messages are added on the way: rounds of summands, and what the sums mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from bounds.claims import NoClaim, Unbiased, UnbiasedMean
from bounds.fields import Fields

from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..exchange.ordered_mean import add_rows
from ..feedback.feedback import State
from ..key import Key

# What ranks add up: numbers in binary32, or words of a few bits modulo a power of two.


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


@dataclass(frozen=True, eq=False)
class Sums:
    """What a round gives to every rank, the same bits.

    Parameters
    ----------
    values : tuple of ndarray
        The sum of each of the round's terms.
    members : int
        How many ranks have been added up.
    """

    values: tuple[np.ndarray, ...]
    members: int


# yields one rank's terms of a round, is sent the sums, and returns (its new state, the mean, float32)
Rounds = Generator[tuple[Terms, ...], Sums, tuple[State, np.ndarray]]


class Summed(Fields, ABC):
    """A compressor of the vectors of m ranks to sums that all of them read alike; subclasses are frozen dataclasses.

    Attributes
    ----------
    name : str
        What it is called.
    sources : tuple of str
        Keys in ``bounds/references.bib`` of the works that the docstring names; empty by default.
    coordinatewise : bool
        Whether nothing is remembered from step to step, so that any part of a vector may be cut out.
    """

    name: ClassVar[str]
    sources: ClassVar[tuple[str, ...]] = ()
    coordinatewise: ClassVar[bool] = True

    def init(self, d: int) -> State:
        """Return what a rank remembers before the first step; empty unless the method needs it.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return {}

    @abstractmethod
    def rounds(self, state: State, x: np.ndarray, *, key: Key, m: int, member: bool) -> Rounds:
        """Return the rounds of one rank: it yields its terms, is sent the sums, and returns (new state, mean).

        Parameters
        ----------
        state : State
            What this rank remembers.
        x : ndarray, shape (d,)
            Its vector, float32 and finite; zeros if it is no member.
        key : Key
            Another one for every step, with the rank in it; ``key.shared()`` is that of all ranks.
        m : int
            The largest number of members.
        member : bool
            Whether its terms are added; one that is none reads the sums only.
        """

    @abstractmethod
    def bits_of_rounds(self, d: int, m: int) -> tuple[int, ...]:
        """Return the bits of one rank's terms, round by round.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """

    def bits(self, d: int, m: int) -> int:
        """Return the bits of one rank's terms; 2 (1 - 1/m) times as many are sent by a rank.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        return sum(self.bits_of_rounds(d, m))

    def claim_mean(self, d: int, m: int) -> UnbiasedMean | NoClaim:
        """Return what the result promises about the mean of m vectors.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        return NoClaim(f"{self.name} promises nothing about the mean of one step")

    def claim(self, d: int, m: int) -> Unbiased | NoClaim:
        """Return what the parts y_i of the mean y of the y_i promise, over all ranks: mean ``E|y_i - x_i|^2`` <= omega
        mean ``|x_i|^2``.

        Given all vectors, each y_i is unbiased, independent of the others, and known to its rank.  Theorems about the
        mean of independent messages that only use the sum of their errors hold with this omega.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        claim = self.claim_mean(d, m)
        return claim if isinstance(claim, NoClaim) else NoClaim(f"{self.name} speaks of the mean only")

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return instances valid for every d >= 1 and m up to 16."""


class SummedByRows(Summed):
    """A method without memory that describes the terms of many ranks at once, one row per rank.

    ``rounds`` and ``sum_of_stream`` both follow from the two methods below.
    """

    @abstractmethod
    def terms(self, x: np.ndarray, sums: Sequence[Sums], *, keys: Sequence[Key], m: int) -> tuple[Terms, ...]:
        """Return the terms of some ranks in the next round; () after the last round.

        Parameters
        ----------
        x : ndarray, shape (b, d)
            Their vectors, float32 and finite.
        sums : sequence of Sums
            Results of the rounds before.
        keys : sequence of Key
            Streams of these ranks.
        m : int
            Largest number of members.

        Returns
        -------
        tuple of Terms
            Values of shape (b, n).
        """

    @abstractmethod
    def mean(self, sums: Sequence[Sums], *, d: int, m: int) -> np.ndarray:
        """Return the mean, float32, shape (d,), from the results of all rounds.

        Parameters
        ----------
        sums : sequence of Sums
            Results of all rounds.
        d : int
            Number of coordinates.
        m : int
            Largest number of members.
        """

    def rounds(self, state: State, x: np.ndarray, *, key: Key, m: int, member: bool) -> Rounds:
        """Sum what ``terms`` describes, with one row."""
        sums: list[Sums] = []
        while terms := self.terms(x[None], sums, keys=[key], m=m):
            sums.append((yield tuple(replace(part, values=part.values[0]) for part in terms)))
        return state, self.mean(sums, d=x.size, m=m)


# The rounds of several vectors side by side, so that one exchange carries a round of all.


def together(rounds: Sequence[Rounds]) -> Generator[tuple[Terms, ...], Sums, list[tuple[State, np.ndarray]]]:
    """Return rounds that carry those of several vectors; one that needs fewer is silent in the last ones.

    Parameters
    ----------
    rounds : sequence of Rounds
        Of each vector.

    Returns
    -------
    generator
        Yields the terms of all, is sent their sums, and returns (state, mean) of each vector, in order.
    """
    results: dict[int, tuple[State, np.ndarray]] = {}
    waiting: dict[int, tuple[Terms, ...]] = {}
    answers: dict[int, Sums | None] = dict.fromkeys(range(len(rounds)))
    while True:
        for i, answer in answers.items():
            try:
                waiting[i] = next(rounds[i]) if answer is None else rounds[i].send(answer)
            except StopIteration as stop:
                results[i] = stop.value
                waiting.pop(i, None)
        if not waiting:
            return [results[i] for i in range(len(rounds))]
        sums = yield tuple(terms for part in waiting.values() for terms in part)
        values = iter(sums.values)
        answers = {i: Sums(tuple(next(values) for _ in part), sums.members) for i, part in waiting.items()}
