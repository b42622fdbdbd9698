"""The operators among which a run may choose, and what is known of each before the first step.

Unbiased operators without memory: what a biased one does to progress, or a residual, shows in no number that is
measured while training, and a memory would have to be handed over where the operator changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import torch

from bounds.claims import Unbiased
from bounds.runtime import Coding
from operators import QSGD, TCDQ, Key, Operator
from operators.random import normal

SAMPLE = 1 << 20  # coordinates of the vector that is encoded once to see how long it takes
REPEATS = 3
LADDER: tuple[Operator | None, ...] = (
    None,
    QSGD(levels=127, norm="max", bucket=512, code="fixed"),  # 8 bits, the fastest
    TCDQ(omega=0.004),  # 4 bits
    TCDQ(omega=0.07),  # 2 bits
    TCDQ(omega=0.4),  # 1 bit
)


@dataclass(frozen=True)
class Ladder:
    """What ``operator="auto"`` chooses from.

    Parameters
    ----------
    operators : tuple of Operator or None, optional
        Unbiased ones; None sends whole models.
    codings : tuple of Coding or None, optional
        Seconds of each, whatever it is in truth: for simulated clocks.  None measures them when the averaging is made;
        a simulated clock then counts none.

    Raises
    ------
    ValueError
        For no operator, and unless there is one coding for each.
    """

    operators: tuple[Operator | None, ...] = LADDER
    codings: tuple[Coding, ...] | None = None

    def __post_init__(self) -> None:
        strange = [operator for operator in self.operators if not (operator is None or isinstance(operator, Operator))]
        if not self.operators or strange:
            raise ValueError(
                "a ladder has operators without memory, or None for whole models, at least one of them; got "
                f"{strange or self.operators}"
            )
        if self.codings is not None and len(self.codings) != len(self.operators):
            raise ValueError(
                f"give one coding for each operator; got {len(self.codings)} for {len(self.operators)} operators"
            )

    def uncharged(self) -> Ladder:
        """Return the ladder for a simulated clock: as it is, or without coding seconds if it has none."""
        return self if self.codings is not None else replace(self, codings=(Coding(0.0, 0.0),) * len(self.operators))


T = TypeVar("T")


def apart(operator: T | Ladder | Literal["auto"]) -> tuple[T | None, Ladder | None]:
    """Return (the operator of all rounds, what that of every round is chosen from), one of them None.

    Parameters
    ----------
    operator : Operator or Feedback or Summed or Ladder or {"auto"} or None
        As given to ``PeriodicAveraging``.

    Raises
    ------
    ValueError
        For another word.
    """
    if isinstance(operator, str):
        if operator != "auto":
            raise ValueError(f'operator must be an operator, a ladder, "auto" or None; got {operator!r}')
        return None, Ladder()
    return (None, operator) if isinstance(operator, Ladder) else (operator, None)


@dataclass(frozen=True)
class Trial:
    """What one operator does to a Gaussian vector of as many coordinates as the model has.

    Parameters
    ----------
    bits : float, bits
        Of the message.
    error : float
        Relative squared error.
    coding : Coding
        Seconds of one movement.
    """

    bits: float
    error: float
    coding: Coding


def trial_of(operator: Operator, *, d: int, device: torch.device, key: Key) -> Trial:
    """Encode and decode a Gaussian vector a few times; the quickest counts, a larger vector than 2^20 in proportion.

    Parameters
    ----------
    operator : Operator
        Unbiased.
    d : int
        Coordinates of the model.
    device : torch.device
        Where they are.
    key : Key
        Of vector and message.

    Raises
    ------
    ValueError
        For an operator that does not claim to be unbiased.
    """
    n = min(d, SAMPLE)
    if not isinstance(operator.claim(n), Unbiased):
        raise ValueError(
            f"a ladder has unbiased operators only, whose errors average out; {operator} claims {operator.claim(n)}: "
            "leave it out, or give it as the only operator"
        )
    x = torch.from_numpy(normal(key.fold_in(0), n)).float().to(device)
    seconds: list[tuple[float, float]] = []
    for repeat in range(REPEATS):
        of_message = key.fold_in(1 + repeat)
        began = _now(device)
        message = operator.encode(x, key=of_message)
        between = _now(device)
        decoded = operator.decode(message, d=n, key=of_message)
        seconds.append((between - began, _now(device) - between))
    error = float((decoded - x).double().square().sum() / x.double().square().sum())
    coding = Coding(*(min(column) * d / n for column in zip(*seconds, strict=True)))
    return Trial(message.bits * d / n, error, coding)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def shared_trials(trials: Sequence[Trial], rows: Sequence[Sequence[float]]) -> list[Trial]:
    """Return what all ranks go by: the slowest rank's seconds, the first one's bits and errors.

    Parameters
    ----------
    trials : sequence of Trial
        Of this rank, of which only the number counts.
    rows : sequence of sequence of float
        ``row_of`` every rank.
    """
    return [
        Trial(
            rows[0][4 * i],
            rows[0][4 * i + 1],
            Coding(max(row[4 * i + 2] for row in rows), max(row[4 * i + 3] for row in rows)),
        )
        for i in range(len(trials))
    ]


def row_of(trials: Sequence[Trial]) -> list[float]:
    """Return the numbers of all trials of a rank, one after the other.

    Parameters
    ----------
    trials : sequence of Trial
        Of this rank.
    """
    return [number for t in trials for number in (t.bits, t.error, t.coding.encode_s, t.coding.decode_s)]
