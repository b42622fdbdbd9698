"""Merge parts of an averaging, as analysed in ``bounds.dynamics.outer``.

A part merges one fragment of the model on the workers that a process hosts.  ``Overwrite`` and ``Corrected`` send
during a round and merge at its end.  ``Delayed`` and ``Eager`` send at the end of a round and merge at the end of the
next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch

from bounds.schedules import Fixed, Schedule

from ...processes.tensors import is_finite
from ...records.numbers import real_number, whole_number
from ...records.round import Error
from ..outer import Averaging, OuterOptimizer

OptimizerState = Literal["keep", "average", "reset"]
Vectors = list[torch.Tensor]


@dataclass(frozen=True)
class Arrival:
    """A received average.

    Parameters
    ----------
    mean : tensor, shape (d,)
        Mean of the workers' messages.
    is_movement : bool
        Whether the messages were movements rather than models.
    bits : tuple of int, bits
        Lengths of the ranks' messages.
    errors : list of Error
        Compression errors, one per worker hosted here.
    mean_bits : tuple of int, bits, optional
        Lengths of the owners' messages in two shots.
    buffers : list of dict of str to tensor, or None, optional
        Means of the buffers that differed, by name, per worker hosted here; None where buffers were not exchanged.
    members : tuple of int, optional
        Ranks that contributed; empty if no rank did.
    refused : str or None, optional
        Error that all ranks raise when they merge it.
    """

    mean: torch.Tensor
    is_movement: bool
    bits: tuple[int, ...]
    errors: list[Error]
    mean_bits: tuple[int, ...] = ()
    buffers: list[dict[str, torch.Tensor]] | None = None
    members: tuple[int, ...] = ()
    refused: str | None = None


@dataclass
class Common:
    """The common model of one part and the last message; with "eager" every worker has its own common model.

    Parameters
    ----------
    thetas : list of tensor, shape (d,)
        Common model of each worker hosted here; never written in place.
    outers : list of OuterOptimizer
        One per worker where the common models differ, else one.
    m : int
        Number of workers of the run.
    sent : list of tensor
        Last messages of the workers hosted here.
    base : tensor or None
        Model at which the movement of a sent model began; None if movements were sent.
    """

    thetas: Vectors
    outers: list[OuterOptimizer]
    m: int
    sent: Vectors = field(default_factory=list)
    base: torch.Tensor | None = None

    def step(self, arrival: Arrival) -> torch.Tensor:
        """Take the outer step for an arrival; store and return the new common model."""
        theta, (outer, *_) = self.thetas[0], self.outers
        if isinstance(outer, Averaging) and not arrival.is_movement and self.base is theta:
            theta = arrival.mean  # exactly, without the rounding errors of theta + (mean - theta)
        else:
            movement = arrival.mean if arrival.is_movement or self.base is None else arrival.mean - self.base
            theta = outer.step(theta, movement)
        if not is_finite(theta):
            raise ValueError("the outer step is not finite: lower the outer learning rate")
        self.thetas = [theta] * len(self.thetas)
        return theta


@dataclass(frozen=True, kw_only=True)
class Merge(ABC):
    """What an averaging does to a worker's model.

    Parameters
    ----------
    fragments : int or sequence of str, optional
        Number of parts of equal length into which the model is split, >= 1, or the names of the modules or parameters
        that are the parts, in the order of their averagings.  Each part has rounds of tau steps; these end
        tau/fragments steps after one another.
    optimizer_state : {"keep", "reset"}, optional
        What an averaging does to the state of the inner optimizer.  "keep" leaves each worker's own.  "reset" clears
        it, so that local momentum restarts from zero as in AdaComm.

    Raises
    ------
    ValueError
        For values out of range.
    """

    fragments: int | Sequence[str] = 1
    optimizer_state: OptimizerState = "keep"

    within_round: ClassVar[bool] = True  # whether a message is sent and merged in the same round
    is_common: ClassVar[bool] = True  # whether all workers have the same common model
    keeps_counts: ClassVar[bool] = True  # whether integer buffers keep what was counted since they were sent

    def __post_init__(self) -> None:
        if isinstance(self.fragments, Sequence) and not isinstance(self.fragments, str):
            object.__setattr__(self, "fragments", tuple(self.fragments))
        else:
            object.__setattr__(self, "fragments", whole_number("fragments", self.fragments))
        if self.parts < 1:
            raise ValueError(f"fragments must be >= 1; got {self.fragments}")
        if self.optimizer_state not in self.optimizer_states:
            raise ValueError(
                f"optimizer_state must be {' or '.join(self.optimizer_states)} with {type(self).__name__}; got "
                f"{self.optimizer_state!r}"
            )

    @property
    def in_flight(self) -> bool:
        """Whether the model is averaged in parts or while workers step, so that ``overlapped`` keeps the messages."""
        return True

    @property
    def keeps_steps(self) -> bool:
        """Whether workers continue from different models after a merge."""
        return False

    @property
    def optimizer_states(self) -> tuple[str, ...]:
        """The values that ``optimizer_state`` may have."""
        return "keep", "reset"

    @property
    def parts(self) -> int:
        """The number of fragments."""
        return self.fragments if isinstance(self.fragments, int) else len(self.fragments)

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules that are fragments; empty for fragments of equal length."""
        return () if isinstance(self.fragments, int) else tuple(self.fragments)

    def check(self, schedule: Schedule) -> None:
        """Raise ValueError for a schedule with which the parts cannot take turns."""
        if self.parts > 1 and not isinstance(schedule, Fixed):
            raise ValueError(f"rounds of fragments need a fixed tau; got {self.fragments} with {schedule}")

    def steps_in_flight(self, tau: int) -> int:
        """Return the local steps that a message is in flight in a round of tau steps."""
        return tau

    def outgoing(self, common: Common, models: Vectors) -> tuple[Vectors, torch.Tensor | None]:
        """Return the workers' messages, and the model at which their movement began; None if movements are sent."""
        return models, common.thetas[0]

    @abstractmethod
    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Return the workers' next models after an arrival, None without one; update the common model."""


@dataclass(frozen=True, kw_only=True)
class Blocking(Merge):
    """Workers wait for the average and start from the new common model; fragments wait each at its own step.

    With one fragment, ``optimizer_state`` may also be "average", the mean of all workers' states.  States are matched
    by parameter name.  A rank without a moment counts as zero and gets the mean.  Step counters become the largest of
    all ranks.
    """

    keeps_counts: ClassVar[bool] = False

    @property
    def in_flight(self) -> bool:
        """Whether fragments take turns."""
        return self.fragments != 1

    @property
    def optimizer_states(self) -> tuple[str, ...]:
        """The values that ``optimizer_state`` may have."""
        return ("keep", "reset") if self.in_flight else ("keep", "average", "reset")

    def steps_in_flight(self, tau: int) -> int:
        """Return 0."""
        return 0

    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Replace the models by the new common model."""
        return [common.step(arrival)] * len(models) if arrival is not None else models


@dataclass(frozen=True)
class _WithinRound(Merge):
    delay: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delay is None:
            return
        object.__setattr__(self, "delay", whole_number("delay", self.delay))
        if self.delay < 0:
            raise ValueError(f"delay must satisfy 0 <= delay <= tau; got delay = {self.delay}")

    def check(self, schedule: Schedule) -> None:
        super().check(schedule)
        if self.delay is not None and isinstance(schedule, Fixed) and self.delay > schedule.tau:
            raise ValueError(f"delay must satisfy 0 <= delay <= tau; got delay = {self.delay} with {schedule}")

    def steps_in_flight(self, tau: int) -> int:
        return tau if self.delay is None else min(self.delay, tau)


@dataclass(frozen=True)
class Corrected(_WithinRound):
    """Workers step while the average travels; those steps are added to the new common model.

    Parameters
    ----------
    delay : int or None, optional
        Local steps between send and merge, 0 <= delay <= tau.  None is the whole round.  At 0 the workers wait.
    """

    @property
    def keeps_steps(self) -> bool:
        """Whether workers continue from different models after a merge."""
        return True

    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Add the movement of each model since it was sent to the new common model."""
        if arrival is None:
            return models
        sent, theta = common.sent, common.step(arrival)
        return [theta + (model - before) for model, before in zip(models, sent, strict=True)]


@dataclass(frozen=True)
class Overwrite(_WithinRound):
    """Workers step while the average travels; those steps are dropped, or kept in part.

    Parameters
    ----------
    delay : int, optional
        Local steps between send and merge, 0 <= delay < tau; the whole round only with a ``local_weight``.  At 0, the
        default here and in torchft, the workers wait.
    local_weight : float, optional
        Weight w in [0, 1) of the worker's own model: model = w model + (1 - w) new common model.  It is torchft's
        ``fragment_update_alpha``.  With w > 0 the models differ after a merge, and the common model is the new one.
    """

    delay: int = 0
    local_weight: float = 0.0

    keeps_counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", whole_number("delay", self.delay))
        super().__post_init__()
        object.__setattr__(self, "local_weight", real_number("local_weight", self.local_weight))
        if not 0 <= self.local_weight < 1:
            raise ValueError(f"local_weight must satisfy 0 <= local_weight < 1; got {self.local_weight}")

    def check(self, schedule: Schedule) -> None:
        super().check(schedule)
        if isinstance(schedule, Fixed) and self.delay == schedule.tau and not self.local_weight:
            raise ValueError(
                f"delay of Overwrite must be < tau, or all steps are dropped; got delay = tau = {self.delay}: lower it "
                "or use Corrected"
            )

    @property
    def keeps_steps(self) -> bool:
        """Whether workers continue from different models after a merge."""
        return self.local_weight > 0

    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Replace each model by w model + (1 - w) new common model."""
        if arrival is None:
            return models
        theta, w = common.step(arrival), self.local_weight
        return [w * model + (1 - w) * theta for model in models] if w else [theta] * len(models)


@dataclass(frozen=True, kw_only=True)
class Delayed(Merge):
    """The average of a round is merged at the end of the next one."""

    within_round: ClassVar[bool] = False

    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Replace the models, and send their own movement."""
        return [common.step(arrival) if arrival is not None else common.thetas[0]] * len(models)


@dataclass(frozen=True, kw_only=True)
class Eager(Merge):
    """As ``Delayed``, but a worker's own share of an average is applied at once."""

    within_round: ClassVar[bool] = False
    is_common: ClassVar[bool] = False

    @property
    def keeps_steps(self) -> bool:
        """Whether workers continue from different models after a merge."""
        return True

    def outgoing(self, common: Common, models: Vectors) -> tuple[Vectors, torch.Tensor | None]:
        """Return the workers' movements."""
        return [model - theta for model, theta in zip(models, common.thetas, strict=True)], None

    def merge(self, common: Common, models: Vectors, arrival: Arrival | None) -> Vectors:
        """Step by this worker's share of its current movement and the others' shares of the previous round."""
        thetas: Vectors = []
        for i, (theta, model) in enumerate(zip(common.thetas, models, strict=True)):
            movement = (model - theta) / common.m
            if not is_finite(movement):  # all ranks refuse it at its arrival
                thetas.append(theta)
                continue
            if arrival is not None:
                movement = movement + arrival.mean - common.sent[i] / common.m
            thetas.append(common.outers[i].step(theta, movement))
        common.thetas = thetas
        return [theta if is_finite(model) else model for theta, model in zip(thetas, models, strict=True)]


def plain(arrival: Arrival | None) -> dict[str, Any] | None:
    """Return an arrival as tensors and plain values."""
    return None if arrival is None else dict(vars(arrival))


def restored(arrival: dict[str, Any], like: torch.Tensor) -> Arrival:
    """Rebuild an arrival from the values of ``plain``, with the dtype and device of ``like``."""
    tuples = {name: tuple(arrival[name]) for name in ("bits", "members")}
    return Arrival(**{**arrival, **tuples, "mean": arrival["mean"].to(like)})
