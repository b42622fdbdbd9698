"""The learning rate of an optimizer as one number, which ranks can exchange.

A rate of 0 is normal (warm-up, end of a decay, a frozen group), so is None (an optimizer with a step size of its own,
such as Adafactor), and so is a tensor of one element.
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

    Parameters
    ----------
    group : mapping
        One of ``optimizer.param_groups``.

    Notes
    -----
    Never raises: a rank that raised alone would leave the others waiting.  ``require_rates`` raises on all.
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
    """Return the largest learning rate of the groups, UNKNOWN if all are None; what is invalid comes first.

    Parameters
    ----------
    groups : sequence of mapping
        ``optimizer.param_groups``.
    """
    rates = [rate for group in groups if not math.isnan(rate := group_rate(group))]
    if not rates:
        return UNKNOWN
    invalid = [rate for rate in rates if not 0 <= rate < math.inf]
    return invalid[0] if invalid else max(rates)


def require_rates(rates: Sequence[float]) -> list[float | None]:
    """Return the learning rates of the ranks, None where they are unknown.

    Parameters
    ----------
    rates : sequence of float
        What ``learning_rate`` gave, in rank order, the same on all ranks.

    Raises
    ------
    ValueError
        For a negative or infinite rate, and for what is no number.
    """
    for rank, rate in enumerate(rates):
        if not (math.isnan(rate) or 0 <= rate < math.inf):
            given = "one that is no such number" if rate == INVALID else f"{rate:g}"
            raise ValueError(
                f"a learning rate must be None or one finite number >= 0; rank {rank} has {given}: correct lr in the "
                "param_groups of its optimizer"
            )
    return [None if math.isnan(rate) else rate for rate in rates]


class RoundRates:
    """The learning rates of the local steps of a round, read after every step.

    A scheduler may step before or after the averaging reads the rate, so a step counts with the larger of the rates
    before and after it: the sum of its gradients is never overestimated.

    Parameters
    ----------
    optimizer : Optimizer
        The inner optimizer.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self._read = [self._groups()]

    def record(self) -> None:
        """Read the rates after a local step; those on a GPU are copied there, without a wait."""
        self._read.append(self._groups())

    def now(self) -> float:
        """Return the learning rate as it is now."""
        return learning_rate(self.optimizer.param_groups)

    def end_round(self) -> float:
        """Return the mean over the round's steps, and begin the next round."""
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
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        rates : sequence of float
            What ``state_dict`` gave.
        """
        self._read = [[{"lr": None if math.isnan(rate) else rate}] for rate in rates]

    def _groups(self) -> list[Mapping[str, Any]]:
        rates = [group.get("lr") for group in self.optimizer.param_groups]
        return [{"lr": r.detach().clone() if isinstance(r, torch.Tensor) else r} for r in rates]
