"""Learning rate of an optimizer as one number that ranks can exchange.

A rate may be 0 (warm-up, end of a decay, a frozen group), None (an optimizer with its own step size, such as
Adafactor), or a tensor of one element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

UNKNOWN = math.nan  # every group has the learning rate None
INVALID = -math.inf  # some group has none that is a number >= 0


def group_rate(group: Mapping[str, Any]) -> float:
    """Return the learning rate of a parameter group, UNKNOWN for None, or INVALID.

    It never raises: a rank that raised alone would block the other ranks.  ``require_rates`` raises on all ranks.
    """
    rate = group.get("lr")
    if rate is None:
        return UNKNOWN
    try:
        number = float(rate.detach() if isinstance(rate, torch.Tensor) else rate)
    except (TypeError, ValueError, RuntimeError):
        return INVALID
    return INVALID if math.isnan(number) else number


def learning_rate(groups: Sequence[Mapping[str, Any]]) -> float:
    """Return the largest learning rate of the groups; UNKNOWN if all are None; an invalid one takes precedence."""
    rates = [rate for group in groups if not math.isnan(rate := group_rate(group))]
    if not rates:
        return UNKNOWN
    invalid = [rate for rate in rates if not 0 <= rate < math.inf]
    return invalid[0] if invalid else max(rates)


def require_rates(rates: Sequence[float]) -> list[float | None]:
    """Return the learning rates of the ranks, None where unknown; ``rates`` are the same on all ranks, in rank order.

    Raises
    ------
    ValueError
        For a rate that is negative, infinite or not a number.
    """
    for rank, rate in enumerate(rates):
        if not (math.isnan(rate) or 0 <= rate < math.inf):
            given = "an invalid one" if rate == INVALID else f"{rate:g}"
            raise ValueError(
                f"a learning rate must be None or one finite number >= 0; rank {rank} has {given}: correct lr in the "
                "param_groups of its optimizer"
            )
    return [None if math.isnan(rate) else rate for rate in rates]


class RoundRates:
    """Learning rates of the local steps of a round, read after every step.

    A scheduler may step before or after the rate is read.  A step therefore counts with the larger of the rates before
    and after it, so that the sum of its gradients is never overestimated.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self._read = [self._groups()]

    def record(self) -> None:
        """Read the rates after a local step; rates on a GPU are copied there without synchronising."""
        self._read.append(self._groups())

    def now(self) -> float:
        """Return the current learning rate."""
        return learning_rate(self.optimizer.param_groups)

    def end_round(self) -> float:
        """Return the mean rate over the round's steps, and begin the next round."""
        rates = [learning_rate(groups) for groups in self._read]
        self._read = self._read[-1:]
        steps = [max(pair) for pair in pairwise(rates)] or rates
        if min(steps) == max(steps) or not all(0 <= rate < math.inf for rate in rates):
            return next((rate for rate in rates if not 0 <= rate < math.inf), steps[0])
        return math.fsum(steps) / len(steps)

    def state_dict(self) -> list[float]:
        """Return the rates read in this round."""
        return [learning_rate(groups) for groups in self._read]

    def load_state_dict(self, rates: Sequence[float]) -> None:
        """Restore a state of ``state_dict``."""
        self._read = [[{"lr": None if math.isnan(rate) else rate}] for rate in rates]

    def _groups(self) -> list[Mapping[str, Any]]:
        rates = [group.get("lr") for group in self.optimizer.param_groups]
        return [{"lr": r.detach().clone() if isinstance(r, torch.Tensor) else r} for r in rates]
