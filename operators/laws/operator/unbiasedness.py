"""Law: no bet on the direction of the error wins (statistical, anytime-valid).

The bets take the claimed constant at its word: what they refute is E C(x) = x together with it.  No test of a mean
does without some bound on the error, so where the constant alone is refuted the mean is not judged (``reconciled``).
"""

from __future__ import annotations

from math import inf

import numpy as np

from bounds.claims import Unbiased

from ..betting.budget import Budget
from ..betting.ledger import Ledger
from ..betting.mean_bets import MeanBets
from ..betting.power import Power, bias_along_x, bias_in_any_direction, bias_of_a_coordinate
from ..kit.evidence import Draws
from ..kit.examples import Example
from ..kit.law import Context
from ..kit.mean_claim import HasMean, MeanClaim, mean_claim
from ..kit.statistical import ClaimBets, StatisticalLaw, Study
from ..kit.subject import Subject
from ..kit.verdict import About, Outcome, Verdict


class Unbiasedness(StatisticalLaw):
    """E C(x) = x, or ``mean_at(x)`` where a biased operator declares it, along x, coordinates and the mean so far."""

    name = "unbiasedness"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim about the mean."""
        if not _claims_a_mean(subject) and not isinstance(subject.target, HasMean):
            return "no mean is claimed"
        return super().applies(subject)

    def silence(self) -> str:
        """Return some d have no claim."""
        return "no mean is claimed at the sizes tried"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets on the mean at every vector with a claim."""
        claims = {j: mean_claim(subject, example.x) for j, example in enumerate(examples)}
        stated = {j: claim for j, claim in claims.items() if claim is not None}
        about = About.MEAN if _claims_a_mean(subject) else About.OTHER
        return _Mean(examples, stated, level, budget.bias, about) if stated else None

    def passed(self, bets: ClaimBets, study: Study, context: Context) -> Verdict:
        """Return INCONCLUSIVE where the power that was asked for is missed."""
        verdict = super().passed(bets, study, context)
        along = verdict.power.along_x
        if along is None or along <= context.budget.bias:
            return verdict
        text = f"{verdict.text}; asked for: {context.budget.bias:g} |x| along x"
        return Verdict(self.name, Outcome.INCONCLUSIVE, text, power=verdict.power, about=bets.about)


def _claims_a_mean(subject: Subject) -> bool:
    return any(isinstance(subject.claim(d), Unbiased) for d in (1, 2, 65))


class _Mean(ClaimBets):
    """Bets on C(x) minus the claimed mean."""

    def __init__(
        self, examples: list[Example], claims: dict[int, MeanClaim], level: float, bias: float, about: About
    ) -> None:
        self.level, self.bias, self.about = level, bias, about
        self.number = {j: i for i, j in enumerate(claims)}
        self.vectors = list(claims)
        wide = [examples[j].x.astype(np.float64) for j in claims]
        norms = [float(np.linalg.norm(x)) for x in wide]
        self.offsets = [(claim.mean - x) / n for claim, x, n in zip(claims.values(), wide, norms, strict=True)]
        self.mean = MeanBets(
            [x / n for x, n in zip(wide, norms, strict=True)], [claim.second_moment for claim in claims.values()]
        )

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch where something is claimed."""
        if vector in self.number:
            number = self.number[vector]
            self.mean.update(number, draws.errors - self.offsets[number])

    @property
    def ledger(self) -> Ledger:
        """The capital of these bets."""
        return self.mean.ledger

    def rejected(self) -> bool:
        """Return whether the capital has reached 1/level."""
        return self.ledger.rejects(self.level)

    def growth(self, vector: int) -> float:
        """Return the log-capital of the bets on one vector alone; -inf where there are none."""
        return self.ledger.growth(self.number[vector]) if vector in self.number else -inf

    def enough(self) -> bool:
        """Return whether the bias asked for would be found."""
        return bias_along_x(self.mean, self.level) <= self.bias

    def richest(self) -> int | None:
        """Return the vector on which the most was won."""
        return self.vectors[self.mean.ledger.richest()]

    def promising(self) -> int | None:
        """Where that bias would show soonest."""
        return self.vectors[self.mean.promising(self.bias)]

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.mean.ledger.richest()
        moments = self.mean.moments[vector]
        length = float(np.linalg.norm(moments.error)) / max(1, moments.n)
        return (
            f"E C(x) = x rejected, given E|C(x) - x|^2 <= {self.mean.s2[vector]:.6g} |x|^2, at level {self.level:.1e} "
            f"after {sum(m.n for m in self.mean.moments)} draws; the mean error so far is "
            f"{self.mean.mean_error():+.3g} |x| along x over all vectors, {length:.3g} |x| at this one"
        )

    def power(self) -> Power:
        """Return what would have been found."""
        return Power(
            along_x=bias_along_x(self.mean, self.level),
            coordinate=bias_of_a_coordinate(self.mean, self.level),
            any_direction=bias_in_any_direction(self.mean, self.level),
        )
