"""The contract of a compressor whose messages are added on the way: rounds of summands, and what the sums mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from bounds.claims import NoClaim, Unbiased, UnbiasedMean
from bounds.fields import Fields

from ..feedback.feedback import State
from ..key import Key
from .terms import Terms


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
