"""The local step of a training run, and the loop of local steps and synchronisations, for every executor. ::

    replicas = [Replica.of(run, rank) for rank in range(m)]
    for accounts in training_rounds(workers, replicas):
        if run.is_over(clock.seconds(), workers.total_steps):
            break

A process of its own hosts one replica, a simulation all of them: the steps, their mini-batches and their order are the
same, so that both come to the same models bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from operators import Key

from ...averaging.engine import Engine
from ...processes.tensors import flat
from ...records.round import Round
from .spec import MINI_BATCHES, TrainingRun


@dataclass
class Replica:
    """One worker that trains.

    Parameters
    ----------
    run : TrainingRun
        What is trained.
    rank : int
        Which worker it is; its mini-batches follow from it.
    model : torch.nn.Module
        Of the workload.
    optimizer : torch.optim.Optimizer
        Of the model's parameters.
    stream : int or None
        Fold of the key of its mini-batches; None for the key itself.
    """

    run: TrainingRun
    rank: int
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    stream: int | None = MINI_BATCHES

    @classmethod
    def of(
        cls, run: TrainingRun, rank: int, *, device: torch.device | str = "cpu", stream: int | None = MINI_BATCHES
    ) -> Replica:
        """Return a worker at the start of a run."""
        model = run.workload.model().to(device)
        return cls(run, rank, model, run.optimizer_of(model), stream)

    def gradient(self, k: int) -> torch.Tensor:
        """Compute the gradient of local step k and return its loss, a scalar."""
        key = Key(self.run.seed, step=k, rank=self.rank)
        self.optimizer.zero_grad()
        loss = self.run.workload.loss(self.model, key=key if self.stream is None else key.fold_in(self.stream))
        loss.backward()
        return loss

    def step(self, k: int) -> torch.Tensor:
        """Make local step k, counted from 0, and return its loss."""
        self.optimizer.param_groups[0]["lr"] = self.run.eta(k)
        loss = self.gradient(k)
        self.optimizer.step()
        return loss.detach()


def training_rounds(
    engine: Engine,
    replicas: Sequence[Replica],
    *,
    before_step: Callable[[], Any] = lambda: None,
    after_step: Callable[[], Any] = lambda: None,
    pacing: AbstractContextManager[Any] | None = None,
    probing: AbstractContextManager[Any] | None = None,
) -> Iterator[list[Round]]:
    """Make local steps and synchronise after every tau-th, for as long as the caller goes on.

    Parameters
    ----------
    engine : Engine
        Counts the steps and synchronises the models.
    replicas : sequence of Replica
        The workers that this process hosts, in the order of the engine's.
    before_step, after_step : callable
        Called around every local step, before a synchronisation that it brings about.
    pacing, probing : context manager or None
        Entered around a local step, and around a gradient that a schedule asks for once more; reusable.

    Yields
    ------
    list of Round
        The accounts of a round that has ended, one for each replica.
    """
    pacing, probing = pacing or nullcontext(), probing or nullcontext()
    while True:
        accounts = None
        while accounts is None:
            k = engine.periods.total_steps
            before_step()
            with pacing:
                losses = [replica.step(k) for replica in replicas]
            after_step()
            accounts = engine.count(losses, [partial(_again, replica, k, probing) for replica in replicas])
        yield accounts


def common_model(engine: Engine, watched: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return what a round has ended with, of the first worker hosted here: the common model and its buffers.

    Workers whose averages are in flight go on from models of their own; then it is what the average has moved.

    Parameters
    ----------
    engine : Engine
        Which has just ended a round.
    watched : sequence of tensor
        That worker's parameters, none of them frozen, and then its floating-point buffers.
    """
    if engine.overlapped is None:
        return flat(watched)
    return flat([engine.overlapped.thetas()[0], *watched[len(engine.workers[0].parameters) :]])


def _again(replica: Replica, k: int, probing: AbstractContextManager[Any]) -> torch.Tensor:
    """Compute the gradient of the step that has just been made once more."""
    with probing:
        return replica.gradient(k)
