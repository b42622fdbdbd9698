"""Simulated workers in one process, bitwise equal to a run of as many processes. ::

    workers = SimulatedWorkers(models, optimizers, schedule=8, operator=QSGD(levels=16), clock=clock)
    for step in range(steps):
        workers.step([local_step(model, optimizer, ...) for model, optimizer in zip(models, optimizers)])

The rounds are those of ``PeriodicAveraging``; only the transport differs.  A ``SimulatedClock`` returns the time that
the real run would have taken.  Workers step one after the other, which works for every model and on one GPU.
``vmapped_gradients`` computes the gradients of small models at once.
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
    """Average m = len(models) workers of one process as ``PeriodicAveraging`` averages m processes.

    Parameters
    ----------
    models : sequence of Module
        One model per worker, of equal shapes; all start as models[0].
    optimizers : sequence of Optimizer or None, optional
        One optimizer per worker; None where nothing needs them.
    schedule : int or Schedule or {"auto"}, optional
        Local steps per round (>= 1), a rule of ``bounds.schedules``, or "auto".
    operator : Operator or Feedback or Summed or Ladder or {"auto"} or None, optional
        Compressor of movements.  On a simulated clock a ladder takes its own coding seconds.
    mixing : Mixing or {"full"}, optional
        How models are mixed at an averaging.
    key : Key, optional
        Seeds the operator's random streams.
    optimizer_state : OptimizerState, optional
        "keep", "average" or "reset" the states of the optimizers.
    block_momentum : float, optional
        Outer momentum in units of gradients, in [0, 1).
    steps : int or None, optional
        Local steps of the whole run, if known.
    clock : Clock or None, optional
        Clock of the run; None is the wall clock.
    exchange : {"gather", "two_shot", "auto"}, optional
        How compressed movements are averaged.
    second : Operator or Feedback or None, optional
        Compressor of the means of two shots; None uses ``operator``.
    errors : bool, optional
        Whether rounds record the compression error of the movements.
    outer : callable or sequence of callable or None, optional
        The outer optimizer, or one per fragment.
    overlap : Overlap, optional
        How steps made during an average in flight are merged.
    delay : int or None, optional
        Local steps in flight, 0 <= delay <= tau.
    fragments : int or sequence of str, optional
        Parts of the model that are averaged after one another, >= 1, or the modules that are the parts.
    local_weight : float, optional
        Weight of a worker's own model in the merge of "overwrite", in [0, 1).
    ranks_per_node : int, optional
        Workers per node, which sum exactly.
    uneven : bool, optional
        Whether workers may leave after different numbers of steps.

    Raises
    ------
    ValueError
        For settings that ``PeriodicAveraging`` refuses, and unless there is one optimizer per model.
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
        outer: OuterFactory | Sequence[OuterFactory] | None = None,
        overlap: Overlap = "none",
        delay: int | None = None,
        fragments: int | Sequence[str] = 1,
        local_weight: float = 0.0,
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
            local_weight=local_weight,
            ranks_per_node=ranks_per_node,
            uneven=uneven,
            ladder=ladder,
        )
        owners = list(optimizers) if optimizers is not None else [None] * len(models)
        if not models or len(owners) != len(models):
            raise ValueError(f"give one optimizer for each of at least one model; got {len(owners)} and {len(models)}")
        for optimizer in owners:
            settings.check_optimizer(optimizer)
        workers = [Worker(model, optimizer, settings.modules) for model, optimizer in zip(models, owners, strict=True)]
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
            Loss of this step, one per worker.  Schedules that use the loss need it.
        closures : sequence of Closure or None or None, optional
            Closure of this step, one per worker.  Schedules that probe the gradient need it.

        Returns
        -------
        list of Round or None
            Every worker's record of the round if it ended, else None.
        """
        return self.count(losses if losses is not None else [None] * len(self.workers), closures)

    average = Rounds.end_round_now

    def leave(self, worker: int) -> None:
        """Stop the steps of a worker; the run ends with the last one, as with ``PeriodicAveraging.leave``.

        Parameters
        ----------
        worker : int
            Index of the worker; its model must not be trained any more.

        Raises
        ------
        ValueError
            Without ``uneven=True``, or if the worker has left before.
        """
        self.depart(worker)


def vmapped_gradients(models: Sequence[torch.nn.Module], loss: Loss, *batches: torch.Tensor) -> torch.Tensor:
    """Compute the gradients of all workers' losses at once, and store them in ``p.grad`` of every parameter.

    Parameters
    ----------
    models : sequence of Module
        Models of the workers.
    loss : Loss
        ``loss(model, *batch)``, a scalar; called once for all workers.
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
    For models of linear layers the gradients were bitwise equal to those of a loop; the losses differed at most in the
    last bit.  Convolutions become grouped convolutions and may differ.
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
