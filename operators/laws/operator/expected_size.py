"""Law: the mean message length is not above the declared one (statistical, anytime-valid)."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ..betting.budget import Budget
from ..betting.power import Power
from ..betting.size_bets import SizeBets
from ..kit.evidence import Draws
from ..kit.examples import Example
from ..kit.law import Violation
from ..kit.statistical import ClaimBets, StatisticalLaw
from ..kit.subject import Subject
from .distortion import SquaredErrors


class ExpectedSize(StatisticalLaw):
    """``bits(d).expected_upper``: no vector's mean length exceeds it."""

    name = "expected-size"
    needs = "operator"

    def silence(self) -> str:
        """Nothing is left to bet on where the length is exact."""
        return "the length is exact, or no mean length is declared"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets that messages are longer than declared."""
        stated: dict[int, float] = {}
        for j, example in enumerate(examples):
            size = subject.target.bits(example.d)
            upper = size.expected_upper
            if size.exact is None and upper is not None:
                if not (isfinite(upper) and upper > 0):
                    raise Violation(f"expected_upper must be finite and positive; got {upper}")
                stated[j] = upper
        if not stated:
            return None
        return _Lengths(SizeBets(list(stated.values()), [examples[j].d for j in stated]), stated, level)


class _Lengths(SquaredErrors):
    """Bets on the lengths of messages."""

    def quantity(self, draws: Draws) -> np.ndarray:
        """Return what the bets are about."""
        return draws.bits

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"the mean length is declared as at most {self.sizes.means[vector]:.6g} bits; rejected at level "
            f"{self.level:.1e} after {self.sizes.counts.sum()} messages with a mean of "
            f"{self.sizes.ratio(vector):.4g} of it"
        )

    def power(self) -> Power:
        """Return what would have been found."""
        return Power()
