"""Law: the mean squared error is not above the claim (statistical, anytime-valid)."""

from __future__ import annotations

from math import inf

import numpy as np

from ..betting.budget import Budget
from ..betting.eprocess import inflated
from ..betting.ledger import Ledger
from ..betting.power import Power, excess
from ..betting.size_bets import SizeBets
from ..kit.evidence import Draws
from ..kit.examples import Example
from ..kit.law import second_moment
from ..kit.statistical import ClaimBets, StatisticalLaw
from ..kit.subject import Subject
from ..kit.verdict import About


class Distortion(StatisticalLaw):
    """``E|C(x) - x|^2 <= omega |x|^2``, or ``alpha |x|^2``."""

    name = "distortion"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs any claim with a constant."""
        if all(second_moment(subject.claim(d)) is None for d in (1, 2, 65)):
            return "nothing is claimed"
        return super().applies(subject)

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets that the error is larger than claimed, at every vector with a constant."""
        constants = {j: second_moment(subject.claim(e.d)) for j, e in enumerate(examples)}
        stated = {j: inflated(s2) for j, s2 in constants.items() if s2 is not None}
        return SquaredErrors(SizeBets(list(stated.values()), [examples[j].d for j in stated]), stated, level)


class SquaredErrors(ClaimBets):
    """Bets on ``|e|^2`` at the vectors in ``stated``, whose claimed constants it holds."""

    about = About.CONSTANT

    def __init__(self, sizes: SizeBets, stated: dict[int, float], level: float, factor: float = 1.0) -> None:
        self.sizes, self.level, self.factor = sizes, level, factor
        self.vectors = list(stated)
        self.number = {j: i for i, j in enumerate(stated)}

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch where something is claimed."""
        if vector in self.number:
            self.sizes.update(self.number[vector], self.quantity(draws))

    def quantity(self, draws: Draws) -> np.ndarray:
        """Return what the bets are about."""
        return self.factor * (draws.errors**2).sum(axis=1)

    @property
    def ledger(self) -> Ledger:
        """The capital of these bets."""
        return self.sizes.ledger

    def rejected(self) -> bool:
        """Return whether the capital has reached 1/level."""
        return self.ledger.rejects(self.level)

    def growth(self, vector: int) -> float:
        """Return the log-capital of the bets on one vector alone; -inf where there are none."""
        return self.ledger.growth(self.number[vector]) if vector in self.number else -inf

    def richest(self) -> int | None:
        """Return the vector on which the most was won."""
        return self.vectors[self.sizes.ledger.richest()]

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"E|C(x) - x|^2 <= {self.sizes.means[vector]:.6g} |x|^2 rejected at level {self.level:.1e} after "
            f"{self.sizes.counts.sum()} draws; the mean at this vector is {self.sizes.ratio(vector):.4g} of it, "
            f"over all vectors {self.sizes.overall_ratio():.4g}"
        )

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(excess=excess(self.sizes, self.level))
