"""Law: an exchange with memory loses nothing: what it returns over many steps adds up to the means (statistical)."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from bounds.claims import ConservedMean

from ..betting.budget import Budget
from ..betting.eprocess import SLACK, ExcessBets
from ..kit.clock import work_s
from ..kit.law import raised
from ..kit.verdict import Outcome, Verdict
from .groups import Group

STEPS = 200
LEAST, MOST = 2, 40  # sequences of steps a group; more only where the rest was once larger than claimed
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
            if turn >= LEAST and (not bets.wealth.peak or work_s() - began > budget.patience):
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
