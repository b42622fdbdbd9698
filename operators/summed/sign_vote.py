"""A majority vote on every sign, by the sum of the votes in words of ceil(log2(m + 1)) bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import NoClaim

from ..key import Key
from .summed import SummedByRows, Sums, Terms, Words


@dataclass(frozen=True)
class SignVote(SummedByRows):
    """Add up 1 for every entry that is not negative, and return the sign of the majority; a tie is positive.

    Notes
    -----
    The votes of ``MajorityVote`` (Bernstein et al. 2019), without a server: m votes for 1 need a word for 0 .. m, the
    bit length of m.  It estimates the sign of the mean, not the mean; ``bounds.theorems.vote_error`` bounds how often
    it is wrong.
    """

    name = "sign_vote"
    sources = ("bernstein2019",)

    def terms(self, x: np.ndarray, sums: Sequence[Sums], *, keys: Sequence[Key], m: int) -> tuple[Terms, ...]:
        """Return the votes in the only round."""
        return () if sums else (Words((x >= 0).astype(np.int64), m.bit_length()),)

    def mean(self, sums: Sequence[Sums], *, d: int, m: int) -> np.ndarray:
        """Return the signs of the majority."""
        (votes,) = sums
        return np.where(2 * votes.values[0] >= votes.members, 1.0, -1.0).astype(np.float32)

    def bits_of_rounds(self, d: int, m: int) -> tuple[int, ...]:
        """Return a word a coordinate."""
        return (m.bit_length() * d,)

    def claim_mean(self, d: int, m: int) -> NoClaim:
        """Return ``NoClaim``: signs carry no length."""
        return NoClaim("signs say nothing about lengths")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return the only one."""
        return (cls(),)
