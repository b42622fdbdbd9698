"""Exchange parts: what is compressed and how it travels, and candidates measured before the first step.

Candidates must be unbiased operators without memory.  The effect of bias or of a residual on progress cannot be
measured during training.  A memory would also have to move from one operator to the next.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import torch

from bounds.claims import Unbiased
from bounds.runtime import Coding
from operators import QSGD, TCDQ, Feedback, Key, Operator
from operators.exchange import Exchange, choose
from operators.random import normal
from operators.summed import Summed

from ...processes.tensors import wait_for

log = logging.getLogger("gpu_validation")

SAMPLE = 1 << 20  # coordinates of the vector by which coding is timed
REPEATS = 3
LADDER: tuple[Operator | None, ...] = (
    None,
    QSGD(levels=127, norm="max", bucket=512, code="fixed"),  # 8 bits, the fastest
    TCDQ(omega=0.004),  # 4 bits
    TCDQ(omega=0.07),  # 2 bits
    TCDQ(omega=0.4),  # 1 bit
)


@dataclass(frozen=True)
class Gather:
    """Exchange in which every rank sends its message to all others: (m - 1) b bits per coordinate.

    Parameters
    ----------
    operator : Operator or Feedback or None, optional
        Compresses the movement of a round; None sums whole models exactly.
    errors : bool, optional
        Whether a rank also measures the compression error of its own movement.
    """

    operator: Operator | Feedback | None = None
    errors: bool = field(default=True, kw_only=True)

    name: ClassVar = "gather"
    means: ClassVar[None] = None


@dataclass(frozen=True)
class TwoShot:
    """Exchange over owners of shards: (1 - 1/m)(b1 + b2) bits per coordinate.

    Every rank sends each shard to its owner, which sends the compressed mean of its shard to all.

    Parameters
    ----------
    operator : Operator or Feedback
        Compresses the movement of a round.
    means : Operator or Feedback or None, optional
        Compresses the means; None uses ``operator``, so that a Feedback keeps a residual at both ends.
    errors : bool, optional
        Whether a rank also measures the compression error of its own movement; it then decodes its own shards too.

    Raises
    ------
    ValueError
        Without an operator, and for a Summed, which has an exchange of its own.
    """

    operator: Operator | Feedback
    means: Operator | Feedback | None = None
    errors: bool = field(default=True, kw_only=True)

    name: ClassVar = "two_shot"

    def __post_init__(self) -> None:
        for stage in (self.operator, self.operator if self.means is None else self.means):
            if not isinstance(stage, Operator | Feedback):
                raise ValueError(
                    f"{type(self).__name__} needs operators for movements and means; got {stage}: use Gather() for "
                    "whole models, and Sum(method) for a Summed"
                )


@dataclass(frozen=True)
class Cheapest(TwoShot):
    """``Gather`` or ``TwoShot``, whichever sends fewer bytes by the operators' declared sizes."""

    def chosen(self, *, d: int, m: int) -> Gather | TwoShot:
        """Return the exchange with fewer bytes.

        Parameters
        ----------
        d : int
            Number of coordinates.
        m : int
            Number of ranks.
        """
        choice = choose("auto", self.operator, self.means, d=d, m=m)
        log.info("%s", choice)
        if choice.exchange == "gather":
            return Gather(self.operator, errors=self.errors)
        return TwoShot(self.operator, self.means, errors=self.errors)


@dataclass(frozen=True)
class Sum:
    """Exchange in which messages are added on the way, as ``operators.summed`` defines.

    Parameters
    ----------
    operator : Summed
        The method.

    Raises
    ------
    ValueError
        For an operator that is not a Summed.
    """

    operator: Summed

    name: ClassVar = "sum"
    means: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Summed):
            raise ValueError(f"Sum needs a method of operators.summed; got {self.operator}: use Gather or TwoShot")


@dataclass(frozen=True)
class Candidates:
    """Exchange whose operator, way and tau are chosen for every round from measurements.

    Each message is gathered or sent in two shots, whichever takes fewer bytes.

    Parameters
    ----------
    operators : tuple of Operator or None, optional
        Unbiased operators; None sends whole models.
    codings : tuple of Coding or None, optional
        Coding seconds of each operator, for simulated clocks.  None measures them when the averaging is made; a
        simulated clock then counts no coding time.

    Raises
    ------
    ValueError
        Without operators, and unless there is one coding per operator.
    """

    operators: tuple[Operator | None, ...] = LADDER
    codings: tuple[Coding, ...] | None = None

    operator: ClassVar[None] = None
    means: ClassVar[None] = None

    def __post_init__(self) -> None:
        strange = [operator for operator in self.operators if not (operator is None or isinstance(operator, Operator))]
        if not self.operators or strange:
            raise ValueError(
                "candidates must be one or more operators without memory, or None for whole models; got "
                f"{strange or self.operators}"
            )
        if self.codings is not None and len(self.codings) != len(self.operators):
            raise ValueError(
                f"give one coding for each operator; got {len(self.codings)} for {len(self.operators)} operators"
            )

    def uncharged(self) -> Candidates:
        """Return the candidates for a simulated clock: missing codings become zero seconds."""
        return self if self.codings is not None else replace(self, codings=(Coding(0.0, 0.0),) * len(self.operators))


ExchangePart = Gather | TwoShot | Cheapest | Sum | Candidates


def exchange_named(name: Exchange, operator: Operator | Feedback | None, *, errors: bool = True) -> ExchangePart:
    """Return the exchange that a record names; without an operator whole models."""
    if name == "gather" or operator is None:
        return Gather(operator, errors=errors)
    return (TwoShot if name == "two_shot" else Cheapest)(operator, errors=errors)


def exchange_of(
    operator: Operator | Feedback | Summed | Literal["auto"] | None, exchange: ExchangePart | None = None
) -> ExchangePart:
    """Return the exchange that the keywords ``operator`` and ``exchange`` of an averaging stand for.

    Raises
    ------
    ValueError
        For both, and for a value that is neither.
    """
    if exchange is None:
        if operator == "auto":
            return Candidates()
        if operator is None or isinstance(operator, Operator | Feedback):
            return Gather(operator)
        if isinstance(operator, Summed):
            return Sum(operator)
        if isinstance(operator, ExchangePart):
            raise ValueError(f"operator must be an operator; got {operator!r}: pass it as exchange=")
        remedy = f": give operators.parse({operator!r})" if isinstance(operator, str) else ""
        raise ValueError(f'operator must be an operator, "auto" or None; got {operator!r}{remedy}')
    if operator is not None:
        raise ValueError(f"give operator or exchange, not both: the exchange has its operator; got {operator}")
    if not isinstance(exchange, ExchangePart):
        raise ValueError(
            "exchange must be Gather(operator), TwoShot(operator, means), Cheapest(operator, means), Sum(method) or "
            f"Candidates(operators); got {exchange!r}"
        )
    return exchange


@dataclass(frozen=True)
class Trial:
    """Measurement of one operator on a Gaussian vector with the model's number of coordinates.

    Parameters
    ----------
    bits : float, bits
        Length of the message.
    error : float
        Relative squared error.
    coding : Coding
        Seconds to encode and decode one movement.
    """

    bits: float
    error: float
    coding: Coding


def trial_of(operator: Operator, *, d: int, device: torch.device, key: Key) -> Trial:
    """Encode and decode a Gaussian vector three times and return the fastest times.

    The vector has at most 2^20 coordinates; bits and times are scaled up to d.

    Parameters
    ----------
    operator : Operator
        Unbiased operator.
    d : int
        Coordinates of the model.
    device : torch.device
        Device of the vector.
    key : Key
        Seeds vector and messages.

    Raises
    ------
    ValueError
        For an operator that does not claim to be unbiased.
    """
    n = min(d, SAMPLE)
    if not isinstance(operator.claim(n), Unbiased):
        raise ValueError(
            f"candidates must be unbiased; {operator} claims {operator.claim(n)}: leave it out, or pass it as operator"
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
    wait_for(device)
    return time.perf_counter()


def shared_trials(trials: Sequence[Trial], rows: Sequence[Sequence[float]]) -> list[Trial]:
    """Return the trials that all ranks use: seconds of the slowest rank, bits and errors of the first.

    Parameters
    ----------
    trials : sequence of Trial
        Trials of this rank; only their number is used.
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
    """Return the numbers of all trials of a rank as one row.

    Parameters
    ----------
    trials : sequence of Trial
        Trials of this rank.
    """
    return [number for t in trials for number in (t.bits, t.error, t.coding.encode_s, t.coding.decode_s)]
