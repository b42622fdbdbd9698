"""Many virtual workers in one process, bit for bit the run that as many real processes would make.

    workers = VirtualWorkers(models, optimizers, schedule=8, operator=QSGD(levels=16), clock=clock)
    for step in range(steps):
        workers.step([local_step(model, optimizer, ...) for model, optimizer in zip(models, optimizers)])

The rounds are those of ``PeriodicAveraging``; only the transport differs, which has nothing to transport.  A
``SimulatedClock`` tells the time that the real run would have taken.  Workers step one after the other, which works
for every model and also on one GPU; ``vmapped_gradients`` lets small ones step together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from bounds.schedules import Schedule
from operators import Feedback, Key, Message, Operator
from operators.gather import Refusal

from .clock import Clock, WallClock
from .deltas import Round
from .mixing import Mixing
from .probe import Closure
from .rounds import Rounds
from .settings import OptimizerState, Settings
from .tensors import fold
from .worker import Worker

Loss = Callable[..., torch.Tensor]


class Meeting:
    """A transport between m workers of one process: all of them are present, so nothing is sent."""

    def __init__(self, m: int) -> None:
        self.size = m
        self.ranks: Sequence[int] = range(m)

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """The mean of the members' vectors, folded in rank order: one tensor, given to all."""
        return [fold([owns[rank] for rank in members])] * self.size

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Every worker's sources."""
        return [{source: owns[source] for source in sources(rank)} for rank in self.ranks]

    def gather(self, messages: Sequence[Message | int | None], *, position: int) -> dict[int, Message]:
        """All messages by rank.  Raises Refusal if a worker has none."""
        for rank, message in enumerate(messages):
            if isinstance(message, int):
                raise Refusal(rank, message)
        return {rank: message for rank, message in enumerate(messages) if isinstance(message, Message)}

    def numbers(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """All rows."""
        return [list(row) for row in rows]

    def agree(self, numbers: Sequence[int]) -> list[int]:
        """All numbers."""
        return list(numbers)

    def uncounted(self) -> AbstractContextManager[None]:
        """Nothing is counted anyway."""
        return nullcontext()

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> None:
        """Copy worker 0's tensors into the others'."""
        with torch.no_grad():
            for others in tensors[1:]:
                for mine, other in zip(tensors[0], others, strict=True):
                    other.copy_(mine)


class VirtualWorkers(Rounds):
    """m = len(models) workers that average as ``PeriodicAveraging`` does between m processes.

    models, optimizers : one for each worker, of equal shapes; all start as models[0].  optimizers may be left out
    where nothing needs them.  The other settings are those of ``PeriodicAveraging``.
    Raises ValueError for what it refuses, and unless there is one optimizer for each model.
    """

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer] | None = None,
        *,
        schedule: int | Schedule | Literal["auto"] = 1,
        operator: Operator | Feedback | None = None,
        mixing: Mixing | Literal["full"] = "full",
        key: Key = Key(0),  # noqa: B008  frozen
        optimizer_state: OptimizerState = "keep",
        block_momentum: float = 0.0,
        steps: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        settings = Settings(schedule, operator, mixing, key, optimizer_state, block_momentum, steps)
        owners = list(optimizers) if optimizers is not None else [None] * len(models)
        if not models or len(owners) != len(models):
            raise ValueError(f"give one optimizer for each of at least one model; got {len(owners)} and {len(models)}")
        for optimizer in owners:
            settings.check_optimizer(optimizer)
        workers = [Worker(model, optimizer) for model, optimizer in zip(models, owners, strict=True)]
        super().__init__(workers, Meeting(len(models)), settings, clock or WallClock())

    def step(
        self,
        losses: Sequence[torch.Tensor | float | None] | None = None,
        closures: Sequence[Closure | None] | None = None,
    ) -> list[Round] | None:
        """Count one local step of every worker; average after every tau-th.

        losses, closures : of this step, one for each worker; needed by schedules that look at them.
        Returns every worker's account of the round, or None.
        """
        return self.count(losses if losses is not None else [None] * len(self.workers), closures)

    def average(self) -> list[Round]:
        """End the round now, however many steps it has had."""
        return self.end_round()


def vmapped_gradients(models: Sequence[torch.nn.Module], loss: Loss, *batches: torch.Tensor) -> torch.Tensor:
    """The gradients of all workers' losses at once, left in ``p.grad`` of every parameter p.

    loss : ``loss(model, *batch)``, a scalar; called once, for all workers.  batches : tensors whose first dimension
    is the worker.  Returns the losses, shape (m,), without gradient history.
    For models of linear layers the gradients have been found equal to the loop's bit for bit, the losses equal but
    for their last bit; convolutions become grouped ones and need not be.  Raises ValueError for models with buffers,
    which vmap cannot update.
    """
    template = models[0]
    if any(True for _ in template.buffers()):
        raise ValueError("vmap cannot update buffers such as BatchNorm statistics: step the workers in a loop")
    named = [dict(model.named_parameters()) for model in models]
    stacked = {name: torch.stack([own[name].detach() for own in named]) for name in named[0]}

    def single(parameters: dict[str, torch.Tensor], *batch: torch.Tensor) -> torch.Tensor:
        return loss(lambda *x: torch.func.functional_call(template, parameters, x), *batch)

    gradients, losses = torch.func.vmap(torch.func.grad_and_value(single))(stacked, *batches)
    for i, own in enumerate(named):
        for name, parameter in own.items():
            parameter.grad = gradients[name][i]
    return losses
