"""Many simulated workers in one process, bit for bit the run that as many real processes would make. ::

    workers = SimulatedWorkers(models, optimizers, schedule=8, operator=QSGD(levels=16), clock=clock)
    for step in range(steps):
        workers.step([local_step(model, optimizer, ...) for model, optimizer in zip(models, optimizers)])

The rounds are those of ``PeriodicAveraging``; only the transport differs, which has nothing to transport.  A
``SimulatedClock`` tells the time that the real run would have taken.  Workers step one after the other, which works
for every model and also on one GPU; ``vmapped_gradients`` lets small ones step together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import torch

from bounds.schedules import Schedule
from operators import Feedback, Key, Operator
from operators.exchange import Exchange
from operators.summed import Summed

from ..records.round import Round
from .clock import Clock, WallClock
from .config import OptimizerState, Settings
from .engine import Rounds
from .gradient_probe import Closure
from .in_process import InProcessTransport
from .ladder import Ladder, apart
from .merge_rules import Overlap
from .mixing import Mixing
from .outer import OuterFactory
from .worker import Worker

Loss = Callable[..., torch.Tensor]
T = TypeVar("T")


class SimulatedWorkers(Rounds):
    """m = len(models) workers that average as ``PeriodicAveraging`` does between m processes.

    Parameters
    ----------
    models : sequence of Module
        One for each worker, of equal shapes; all start as models[0].  optimizers may be left out where nothing needs
        them.  The other settings are those of ``PeriodicAveraging``.
    optimizers : sequence of Optimizer or None, optional
        One for each worker, of equal shapes; all start as models[0].  optimizers may be left out where nothing needs
        them.  The other settings are those of ``PeriodicAveraging``.
    schedule : int or Schedule or {"auto"}, optional
        The rule for the local steps, or their number.
    operator : Operator or Feedback or Summed or Ladder or {"auto"} or None, optional
        The compressor; chosen from a ladder, its coding seconds are those that the ladder says, on a simulated clock.
    mixing : Mixing or {"full"}, optional
        How models are mixed at an averaging.
    key : Key, optional
        Stream of random numbers.
    optimizer_state : OptimizerState, optional
        What becomes of the optimizers' memory at an averaging.
    block_momentum : float, optional
        Momentum between rounds, in units of gradients.
    steps : int or None, optional
        Local steps.
    clock : Clock or None, optional
        The clock of simulated seconds; None for none.
    exchange : {"gather", "two_shot", "auto"}, optional
        How compressed movements become their mean.
    second : Operator or Feedback or None, optional
        The compressor of the means of two shots; by default ``operator``.
    errors : bool, optional
        Whether rounds tell what compression has done to the movements.
    outer : callable or None, optional
        The outer optimizer.
    overlap : Overlap, optional
        What becomes of the steps made while an average is in flight.
    delay : int or None, optional
        Local steps in flight.
    fragments : int, optional
        Parts of the model that travel one after the other.
    ranks_per_node : int, optional
        Workers of a node, which sum exactly among themselves.
    uneven : bool, optional
        Whether workers may leave after different numbers of steps.

    Raises
    ------
    ValueError
        For what it refuses, and unless there is one optimizer for each model.
    """

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer] | None = None,
        *,
        schedule: int | Schedule | Literal["auto"] = 1,
        operator: Operator | Feedback | Summed | Ladder | Literal["auto"] | None = None,
        mixing: Mixing | Literal["full"] = "full",
        key: Key = Key(0),  # noqa: B008  frozen
        optimizer_state: OptimizerState = "keep",
        block_momentum: float = 0.0,
        steps: int | None = None,
        clock: Clock | None = None,
        exchange: Exchange = "gather",
        second: Operator | Feedback | None = None,
        errors: bool = True,
        outer: OuterFactory | None = None,
        overlap: Overlap = "none",
        delay: int | None = None,
        fragments: int = 1,
        ranks_per_node: int = 1,
        uneven: bool = False,
    ) -> None:
        fixed, ladder = apart(operator)
        settings = Settings(
            schedule,
            fixed,
            mixing,
            key,
            optimizer_state,
            block_momentum,
            steps,
            exchange=exchange,
            second=second,
            errors=errors,
            outer=outer,
            overlap=overlap,
            delay=delay,
            fragments=fragments,
            ranks_per_node=ranks_per_node,
            uneven=uneven,
            ladder=ladder,
        )
        owners = list(optimizers) if optimizers is not None else [None] * len(models)
        if not models or len(owners) != len(models):
            raise ValueError(f"give one optimizer for each of at least one model; got {len(owners)} and {len(models)}")
        for optimizer in owners:
            settings.check_optimizer(optimizer)
        workers = [Worker(model, optimizer) for model, optimizer in zip(models, owners, strict=True)]
        super().__init__(workers, InProcessTransport(len(models)), settings, clock or WallClock())

    def step(
        self,
        losses: Sequence[torch.Tensor | float | None] | None = None,
        closures: Sequence[Closure | None] | None = None,
    ) -> list[Round] | None:
        """Count one local step of every worker; average after every tau-th.

        Parameters
        ----------
        losses : sequence of tensor or float or None or None, optional
            Of this step, one for each worker; needed by schedules that look at them.
        closures : sequence of Closure or None or None, optional
            Of this step, one for each worker; needed by schedules that look at them.

        Notes
        -----
        Returns every worker's account of the round, or None.
        """
        return self.count(losses if losses is not None else [None] * len(self.workers), closures)

    average = Rounds.end_round_now

    def leave(self, worker: int) -> None:
        """Let a worker make no more steps; with the last one the run ends, as ``PeriodicAveraging.leave`` ends it.

        Parameters
        ----------
        worker : int
            Which one; its model is not to be trained any more.

        Raises
        ------
        ValueError
            Without ``uneven=True``, or if it has left before.
        """
        self.depart(worker)


def vmapped_gradients(models: Sequence[torch.nn.Module], loss: Loss, *batches: torch.Tensor) -> torch.Tensor:
    """Return the gradients of all workers' losses at once, left in ``p.grad`` of every parameter p.

    Parameters
    ----------
    models : sequence of Module
        The workers' models.
    loss : Loss
        ``loss(model, *batch)``, a scalar; called once, for all workers.
    *batches : tensors whose first dimension is the worker

    Returns
    -------
    tensor
        The losses, shape (m,), without gradient history.

    Raises
    ------
    ValueError
        For models with buffers, which vmap cannot update.

    Notes
    -----
    For models of linear layers the gradients have been found equal to the loop's bit for bit, the losses equal but for
    their last bit; convolutions become grouped ones and need not be.
    """
    template = models[0]
    if any(True for _ in template.buffers()):
        raise ValueError("vmap cannot update buffers such as BatchNorm statistics: step the workers in a loop")
    named = [dict(model.named_parameters()) for model in models]
    stacked = {name: torch.stack([of_worker[name].detach() for of_worker in named]) for name in named[0]}

    def single(parameters: dict[str, torch.Tensor], *batch: torch.Tensor) -> torch.Tensor:
        return loss(lambda *x: torch.func.functional_call(template, parameters, x), *batch)

    gradients, losses = torch.func.vmap(torch.func.grad_and_value(single))(stacked, *batches)
    for i, of_worker in enumerate(named):
        for name, parameter in of_worker.items():
            parameter.grad = gradients[name][i]
    return losses
