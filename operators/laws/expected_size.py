"""Law: the mean message length is not above the declared one (statistical, anytime-valid)."""

from __future__ import annotations

from math import isfinite

import numpy as np

from .budget import Budget
from .distortion import SquaredErrors
from .evidence import Draws
from .examples import Example
from .law import Violation
from .power import Power
from .size_bets import SizeBets
from .statistical import ClaimBets, StatisticalLaw
from .subject import Subject


class ExpectedSize(StatisticalLaw):
    """``bits(d).expected_upper``: no vector's mean length exceeds it."""

    name = "expected-size"
    needs = "operator"

    def silence(self) -> str:
        """Nothing is left to bet on where the length is exact."""
        return "the length is exact, or no mean length is declared"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Bets that messages are longer than declared."""
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
        """What the bets are about."""
        return draws.bits

    def finding(self) -> str:
        """What was claimed and what was seen."""
        at = self.sizes.ledger.richest()
        return (
            f"the mean length is declared as at most {self.sizes.means[at]:.6g} bits; rejected at level "
            f"{self.level:.1e} after {self.sizes.counts.sum()} messages with a mean of {self.sizes.ratio(at):.4g} of it"
        )

    def power(self) -> Power:
        """What would have been found."""
        return Power()
