"""The bets on a joint claim: on the error of the mean, on its bias, and on errors of steps that follow one another.

All are nonnegative supermartingales under the claim (see ``betting.eprocess``), so that each law pays its level once,
whenever it stops.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from bounds.claims import ConservedMean, UnbiasedMean

from ..betting.budget import Budget, work_s
from ..betting.eprocess import SLACK, DirectionBets, ExcessBets, SizeBets, inflated
from ..betting.mean_bets import EXACT, MeanBets
from ..betting.power import excess
from ..kit.law import raised
from ..kit.statistical import ClaimBets, Draws, OnMeans, OnSizes
from ..kit.verdict import Outcome, Verdict
from .groups import Group

LEAST_EXCESS = 0.4  # of the claimed error, that the draws should show
EQUAL = "equal"


def claimed(group: Group, claim: UnbiasedMean) -> float:
    """Return the second moment that a group's errors may have, with binary32 rounding of a sum of m terms allowed.

    Parameters
    ----------
    group : Group
        The vectors.
    claim : UnbiasedMean
        At this m and d.
    """
    return float(sqrt(group.second_moment(claim)) + (sqrt(group.m) - 1) * SLACK) ** 2


class MeanBias(OnMeans):
    """Bets that E y is not the mean: along it, at every coordinate, and along the mean error so far."""

    def __init__(self, groups: list[Group], moments: list[float], level: float, asked: float) -> None:
        bets = MeanBets([g.direction for g in groups], moments, [g.has_mean for g in groups])
        super().__init__(bets, range(len(groups)), level, asked)

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch."""
        self.mean.update(vector, draws.errors)

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        moments = self.mean.moments[self.richest()]
        length = float(np.linalg.norm(moments.error)) / max(1, moments.n)
        return (
            f"E y = xbar rejected at level {self.level:.1e}; the mean error so far is {self.mean.mean_error():+.3g} "
            f"|xbar| along xbar over all groups, {length:.3g} of the scale at this one"
        )


class MeanErrors(OnSizes):
    """Bets that the squared error is larger than claimed."""

    def __init__(self, groups: list[Group], moments: list[float], level: float) -> None:
        self.groups = groups
        super().__init__(self.of(moments), range(len(groups)), level)

    def of(self, moments: list[float]) -> SizeBets:
        """Return bets on squared errors with these second moments."""
        return SizeBets([inflated(s2) for s2 in moments], [g.d for g in self.groups])

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch."""
        self.sizes.update(vector, (draws.errors**2).sum(axis=1))

    def enough(self) -> bool:
        """Return whether an error larger by ``LEAST_EXCESS`` would be found, where the claim allows more than
        rounding.
        """
        return max(self.sizes.means) < EXACT or excess(self.sizes, self.level) <= LEAST_EXCESS

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.richest()
        text = (
            f"E|y - xbar|^2 <= a S + b M rejected at level {self.level:.1e}: {self.sizes.ratio(vector):.4g} of it at "
            f"this group, {self.sizes.overall_ratio():.4g} over all"
        )
        return text + self._of_equal_vectors() * self.groups[vector].name.startswith(EQUAL)

    def _of_equal_vectors(self) -> str:
        """Return a remark where only equal vectors err too much: streams that ranks share."""
        drawn = [j for j, g in enumerate(self.groups) if g.name.startswith("independent") and self.sizes.counts[j]]
        largest = max((self.sizes.ratio(j) for j in drawn), default=2.0)
        return "; not where vectors are independent: do the ranks draw the same numbers?" if largest < 1.2 else ""


class MeanShortfall(MeanErrors):
    """Bets that the squared error is smaller than a claim that is said to be an equality.

    No draw's squared error exceeds ``ceiling`` times the claim.
    """

    states_power = False

    def __init__(self, groups: list[Group], moments: list[float], ceiling: float, level: float) -> None:
        self.ceiling = ceiling
        super().__init__(groups, moments, level)

    def of(self, moments: list[float]) -> SizeBets:
        """Return bets on squared errors below their ceilings."""
        means = [max(s2, SLACK**2) for s2 in moments]
        return SizeBets(means, [g.d for g in self.groups], [1.001 * max(1.0, self.ceiling) * s2 for s2 in means])

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch; rounding may make a small error smaller."""
        self.sizes.update(vector, ((1 + 1e-4) * draws.errors**2).sum(axis=1) + 8 * self.groups[vector].m * SLACK**2)

    def enough(self) -> bool:
        """Return no power is asked for."""
        return True

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        return (
            f"E|y - xbar|^2 = a S + b M is said to be reached; rejected at level {self.level:.1e}: "
            f"{self.sizes.ratio(self.richest()):.4g} of it at this group"
        )


class StepErrors(ClaimBets):
    """Bets on <e_t, ``e_(t-1)/|e_(t-1)|>``: given the past it has mean zero and a second moment of at most the claim.

    A stream that is used in two steps that follow one another makes it positive.
    """

    def __init__(self, moments: list[float], level: float) -> None:
        self.moments, self.level = moments, level
        self.bets = DirectionBets(1.0, np.ones((1, 1)))
        self.pairs = 0

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on the pairs of a batch."""
        s2 = inflated(self.moments[vector])
        length = np.linalg.norm(draws.errors[:-1], axis=1)
        past = draws.errors[:-1] / np.where(length > 0, length, 1.0)[:, None]
        along = (draws.errors[1:] * past).sum(axis=1) / sqrt(s2)
        if s2 > (8 * SLACK) ** 2 and along.size:
            self.bets.update(along[:, None])
            self.pairs += along.size

    def rejected(self) -> bool:
        """Return whether the capital has reached 1/level."""
        return self.bets.wealth.rejects(self.level)

    def richest(self) -> None:
        """No group: the evidence is pooled over groups."""

    def finding(self) -> str:
        """Return what was seen."""
        return (
            f"errors of steps that follow one another are correlated: {float(self.bets.sum[0]) / self.pairs:+.3g} of "
            f"the claimed root mean square over {self.pairs} pairs; draws must vary from step to step"
        )


# -- Law: an exchange with memory loses nothing: what it returns over many steps adds up to the means (statistical)

STEPS = 200
LEAST, MOST = 2, 40  # sequences of steps a group; more only where the rest was once larger than claimed
PATIENCE = 3.0  # of that of the budget, for these sequences
NAME = "conserved"


def conserved(start: Callable[[], Any], groups: list[Group], claim: ConservedMean, budget: Budget) -> Verdict:
    """Bet that the rest after ``STEPS`` steps with one group is larger than claimed.

    Parameters
    ----------
    start : callable
        Returns a ``MeanFunction`` whose memory is empty.
    groups : list of Group
        The vectors.
    claim : ConservedMean
        The residual.
    budget : Budget
        Level and seconds.
    """
    level = budget.false_alarm / len(groups)
    began, sequences = work_s(), 0
    for group in groups:
        bets = ExcessBets((claim.residual + STEPS * sqrt(group.m) * SLACK) ** 2)
        for turn in range(MOST):
            if turn >= LEAST and (not bets.wealth.peak or work_s() - began > PATIENCE * budget.patience):
                break
            try:
                rest = _rest(start(), group)
            except Exception as error:  # whatever the subject raises is a finding
                return Verdict(NAME, Outcome.FAIL, raised(error), group.name, group.x)
            bets.update(np.array([rest]))
            sequences += 1
            if bets.wealth.rejects(level):
                missing = f"{sqrt(rest):.4g} sqrt S is missing, {claim.residual:.4g} may be"
                text = f"after {STEPS} steps {missing}: a residual is lost"
                return Verdict(NAME, Outcome.FAIL, text, group.name, group.x)
    unseen = f"a loss below {claim.residual / STEPS:.2g} sqrt S a step would not have been seen"
    return Verdict(NAME, Outcome.PASS, f"{sequences} sequences of {STEPS} steps; {unseen}")


def _rest(function: Any, group: Group) -> float:
    """Return the squared length of what is missing after the steps, over S."""
    total = sum((function.mean(group.vectors) for _ in range(STEPS)), np.zeros(group.d))
    return float(((total - STEPS * group.wide_mean) ** 2).sum()) / group.mean_square
