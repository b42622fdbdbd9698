"""Simulated workers in one process, bitwise equal to a run of as many processes. ::

    workers = SimulatedWorkers(models, optimizers, schedule=Pacing(8, clock=clock), operator=QSGD(16))
    for step in range(steps):
        workers.step([local_step(model, optimizer, ...) for model, optimizer in zip(models, optimizers)])

The rounds are those of ``PeriodicAveraging``; only the transport differs.  A ``SimulatedClock`` returns the time that
the real run would have taken.  Workers step one after the other, which works for every model and on one GPU.
``vmapped_gradients`` computes the gradients of small models at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, Unpack

import torch

from operators import Message
from operators.ddp.collectives import Refusal

from ..processes.reduction import fold
from ..processes.tensors import as_bytes, assign
from ..processes.transport import Finished, NodeLinks
from ..records.round import Round
from .engine import Engine, HasEngine
from .pacing.clock import WallClock
from .pacing.inputs import Closure
from .settings import ScheduledParts, Settings, name_parts
from .worker import Worker

Loss = Callable[..., torch.Tensor]
T = TypeVar("T")


class InProcessTransport:
    """Transport between m workers of one process; all data is present, so nothing is sent."""

    def __init__(self, m: int) -> None:
        self.size = m
        self.ranks: Sequence[int] = range(m)

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors, summed in rank order: the same tensor for every worker."""
        return [fold([owns[rank] for rank in members])] * self.size

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return the vectors of every worker's sources."""
        return [{source: owns[source] for source in sources(rank)} for rank in self.ranks]

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all messages by rank; raise Refusal if a worker has none."""
        for rank, message in enumerate(messages):
            if isinstance(message, int):
                raise Refusal(rank, message)
        return {rank: message for rank, message in enumerate(messages) if isinstance(message, Message)}

    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return every worker's messages by sender, and the bits sent by each; raise Refusal if a worker has none."""
        for rank, outgoing in enumerate(messages):
            if isinstance(outgoing, int):
                raise Refusal(rank, outgoing)
        sent = {rank: outgoing for rank, outgoing in enumerate(messages) if isinstance(outgoing, Sequence)}
        bits = [sum(message.bits for message in sent.get(rank, ())) for rank in self.ranks]
        return [{sender: outgoing[rank] for sender, outgoing in sent.items()} for rank in self.ranks], bits

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return all rows."""
        return [list(row) for row in rows]

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return all rows."""
        return [list(row) for row in rows]

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return all numbers."""
        return list(numbers)

    def uncounted(self) -> AbstractContextManager[None]:
        """Change nothing inside: this transport counts no bytes."""
        return nullcontext()

    def start(self, work: Callable[[], T]) -> Finished[T]:
        """Run ``work`` now and return its result."""
        return Finished(work())

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the links inside all nodes, and between nodes for every place."""
        nodes = self.size // ranks_per_node
        inside = {node: InProcessTransport(ranks_per_node) for node in range(nodes)}
        return NodeLinks(inside, {place: InProcessTransport(nodes) for place in range(ranks_per_node)})

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> list[int]:
        """Copy worker 0's tensors into those of the other workers; return the workers whose tensors differed."""
        differed = []
        for rank, others in enumerate(tensors[1:], start=1):
            pairs = list(zip(tensors[0], others, strict=True))
            if not all(torch.equal(as_bytes(source), as_bytes(other).to(source.device)) for source, other in pairs):
                differed.append(rank)
            for source, other in pairs:
                assign(other, source.detach())
        return differed


class SimulatedWorkers(HasEngine):
    """Average m = len(models) workers of one process as ``PeriodicAveraging`` averages m processes.

    Parameters
    ----------
    models : sequence of Module
        One model per worker, of equal shapes; all start as models[0].
    optimizers : sequence of Optimizer or None, optional
        One optimizer per worker; None where nothing needs them.
    **parts
        schedule, operator, exchange, merge, outer, mixing, membership and key, as of ``PeriodicAveraging``.

    Raises
    ------
    ValueError
        For parts that ``PeriodicAveraging`` refuses, for a quorum, and unless there is one optimizer per model.
    """

    @name_parts(ScheduledParts)
    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer] | None = None,
        **parts: Unpack[ScheduledParts],
    ) -> None:
        settings = Settings.of(**parts)
        if settings.least:
            raise ValueError("a quorum needs real processes: leave membership out")
        owners = list(optimizers) if optimizers is not None else [None] * len(models)
        if not models or len(owners) != len(models):
            raise ValueError(f"give one optimizer for each of at least one model; got {len(owners)} and {len(models)}")
        for optimizer in owners:
            settings.check_optimizer(optimizer)
        modules = settings.merge.modules
        workers = [Worker(model, optimizer, modules) for model, optimizer in zip(models, owners, strict=True)]
        clock = settings.pacing.clock or WallClock()
        super().__init__(Engine(workers, InProcessTransport(len(models)), settings, clock))

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
        return self.engine.count(losses if losses is not None else [None] * len(self.engine.workers), closures)

    def average(self) -> list[Round]:
        """End the round now, after any number of steps; averages in flight are merged first."""
        return self.engine.end_round_now()

    def leave(self, worker: int) -> None:
        """Stop the steps of a worker; the run ends with the last one, as with ``PeriodicAveraging.leave``.

        Parameters
        ----------
        worker : int
            Index of the worker; its model must not be trained any more.

        Raises
        ------
        ValueError
            Without ``membership=Uneven()``, or if the worker has left before.
        """
        self.engine.leave(worker)


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
