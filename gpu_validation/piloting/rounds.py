"""Trial rounds: loss reduction of every choice and of synchronous steps, from the same point and on the same batches.

Synchronous steps use the mean gradient, as DistributedDataParallel does; with Adam this is not the mean of local steps.
A single process simulates workers on copies of the model.  Ranks of a group use their own data.  The final models are
compared on fresh batches of all workers, the same for all choices.  The next trial starts where the synchronous steps
have ended.  An adaptive optimizer has divided these by squares of the mean gradient, and local steps are divided by
squares of a worker's own gradients, which noise makes larger: before a trial they are scaled to these.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist

from bounds.claims import Contractive
from operators import ErrorFeedback, Feedback, Key, Operator, specification
from ratedist.pilots.progress import RoundTrial, RoundTrials

from ..processes.tensors import flat, load
from .own_training import Snapshot, Training

SECOND_MOMENTS: dict[type[torch.optim.Optimizer], tuple[str, ...]] = {
    torch.optim.Adam: ("exp_avg_sq", "max_exp_avg_sq"),  # and AdamW
    torch.optim.NAdam: ("exp_avg_sq",),
    torch.optim.RAdam: ("exp_avg_sq",),
    torch.optim.RMSprop: ("square_avg",),
    torch.optim.Adagrad: ("sum",),
}
SHARED = 0.5  # weight of the squares of all workers beside a worker's own, which are of few steps
LEVELLED = 0.1  # weight of the mean square of all coordinates, for those that few steps have seen


@dataclass
class Squares:
    """Squared gradients of synchronous steps, summed: of the mean gradient, of each worker here, and of all workers.

    Parameters
    ----------
    mean, shared : tensor, shape (d,)
        Squares of the mean gradient, and the mean of all workers' squares.
    by_worker : list of tensor, shape (d,) each
        Squares of each worker of this process.
    """

    mean: torch.Tensor
    shared: torch.Tensor
    by_worker: list[torch.Tensor]

    def add(self, team: Team, gradients: Sequence[torch.Tensor], mean: torch.Tensor) -> None:
        """Add the gradients of one step, float32 of shape (d,), and their mean over all workers."""
        self.mean += mean.square()
        self.shared += team.mean([gradient.square() for gradient in gradients])
        for total, gradient in zip(self.by_worker, gradients, strict=True):
            total += gradient.square()

    def make_local(self, workers: Sequence[Worker]) -> None:
        """Scale the second moments of adaptive optimizers from the mean gradient to each worker's own gradients.

        A sum also grows with the steps, and steps of a square root of the ratio less need that many more: its ratio is
        squared.
        """
        level = LEVELLED * self.mean.mean()
        for worker, alone in zip(workers, self.by_worker, strict=True):
            squares = SHARED * self.shared + (1 - SHARED) * alone
            ratio = (squares + LEVELLED * squares.mean()) / (self.mean + level)
            worker.scale_second_moments(ratio if level > 0 else torch.ones_like(ratio))


@dataclass
class Worker:
    """One worker of a trial, on a copy of the model.

    Parameters
    ----------
    training : Training
        Training of the copy, with the worker's batches.
    rank : int
        Index of the worker.
    """

    training: Training
    rank: int
    batches: list[Any] = field(default_factory=list)
    fresh: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffers = [b for b in self.training.model.buffers() if b.is_floating_point()]
        self.keep()

    def keep(self) -> None:
        """Store model, optimizer and buffers."""
        self._kept = Snapshot(self.training.model, self.training.optimizer)

    def put_back(self) -> None:
        """Restore the stored state."""
        self._kept.restore()

    def scale_second_moments(self, ratio: torch.Tensor) -> None:
        """Multiply the second moments of an adaptive optimizer by a ratio, shape (d,); squared where they are sums."""
        optimizer, parameters = self.training.optimizer, self.training.parameters
        names = next((names for kind, names in SECOND_MOMENTS.items() if isinstance(optimizer, kind)), ())
        for p, factor in zip(parameters, ratio.split([p.numel() for p in parameters]), strict=True):
            for name in names:
                moment = optimizer.state.get(p, {}).get(name)
                if moment is not None:
                    moment.mul_((factor.square() if name == "sum" else factor).view_as(p).to(moment))

    def draw(self, steps: int, fresh: int) -> None:
        """Take the batches of a trial, and the fresh ones for its loss."""
        self.batches = [self.training.batch() for _ in range(steps)]
        self.fresh = [self.training.batch() for _ in range(fresh)]

    def loss(self) -> float:
        """Return the mean loss on the fresh batches."""
        training = self.training
        with torch.no_grad():
            return sum(float(training.loss(training.model, batch)) for batch in self.fresh) / len(self.fresh)


@dataclass
class Team:
    """The workers of this process, and those of the other ranks of a group.

    Parameters
    ----------
    workers : list of Worker
        Workers of this process.
    size : int
        Number of all workers.
    group : ProcessGroup or None
        Group of the ranks; None for a single process or the default group.
    """

    workers: list[Worker]
    size: int
    group: dist.ProcessGroup | None

    def mean(self, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the mean over all workers, float32, of this process's vectors of shape (d,)."""
        total = torch.stack([vector.double() for vector in vectors]).sum(dim=0)
        if self.size > len(self.workers):
            dist.all_reduce(total, group=self.group)
        return (total / self.size).float()

    def loss(self, point: torch.Tensor) -> float:
        """Return the mean loss at a point over all fresh batches."""
        for worker in self.workers:
            load(point, worker.training.parameters)
        losses = [torch.tensor([worker.loss()], device=point.device) for worker in self.workers]
        return float(self.mean(losses))


@dataclass(frozen=True)
class Choice:
    """Operator and local steps of a trial.

    Parameters
    ----------
    operator : Operator or None
        Compressor of the movement of a round; None for uncompressed movements.
    tau : int
        Local steps per round.
    """

    operator: Operator | None
    tau: int

    def method(self, d: int) -> Operator | Feedback | None:
        """Return the operator, with error feedback if it is contractive."""
        if self.operator is not None and isinstance(self.operator.claim(d), Contractive):
            return ErrorFeedback(self.operator)
        return self.operator


SYNCHRONOUS = Choice(None, 1)  # the mean gradient at every step


def tried_rounds(
    training: Training,
    batches: Sequence[Iterator[Any]],
    operators: Sequence[Operator],
    *,
    taus: Sequence[int],
    moments: int,
    fresh: int,
    key: Key,
    group: dist.ProcessGroup | None,
) -> RoundTrials:
    """Try every operator, and none, with every number of local steps; every rank of a group must call it.

    ``training`` is copied and not changed.  ``taus`` divide the largest, which is the length of a trial.  ``moments``
    is the number of trials, and ``fresh`` the number of batches per worker for the loss after a trial.
    """
    grouped = dist.is_available() and dist.is_initialized()
    ranks, place = (dist.get_world_size(group), dist.get_rank(group)) if grouped else (1, 0)
    workers = [Worker(_copied(training, stream), place * len(batches) + i) for i, stream in enumerate(batches)]
    team, steps = Team(workers, ranks * len(batches), group), taus[-1]
    load_all(workers, team.mean([worker.training.point() for worker in workers]))
    for worker in workers:
        worker.keep()
    others = [Choice(operator, tau) for operator in (None, *operators) for tau in taus]
    choices = [SYNCHRONOUS, *(choice for choice in others if choice != SYNCHRONOUS)]
    zeros = torch.zeros(training.d, device=training.device)
    squares = Squares(zeros.clone(), zeros.clone(), [zeros.clone() for _ in workers])
    falls: list[list[float]] = [[] for _ in choices]
    owed: list[list[float]] = [[] for _ in choices]
    sent: list[list[float]] = [[] for _ in choices]
    for moment in range(moments):
        for worker in workers:
            worker.draw(steps, fresh)
        states, before = training.randomness(), team.loss(workers[0].training.point())
        for choice, gained, late, bits in zip(choices, falls, owed, sent, strict=True):
            for worker in workers:
                worker.put_back()
            states.restore()
            if choice == SYNCHRONOUS:
                gained.append(before - _finite(_synchronous(team, steps, squares), before))
                ends = [Snapshot(worker.training.model, worker.training.optimizer) for worker in workers]
                continue
            squares.make_local(workers)
            fall, debt, lengths = _fall(team, choice, steps, before, key.fold_in(moment))
            gained.append(fall)
            late += debt
            bits += lengths
        for worker, end in zip(workers, ends, strict=True):  # continue where the synchronous steps have ended
            end.restore()
            worker.keep()
    rows = (
        RoundTrial(
            "" if each.operator is None else specification(each.operator),
            each.tau,
            (tuple(gained),),
            *((tuple(column),) if column else () for column in (late, bits)),
        )
        for each, gained, late, bits in zip(choices, falls, owed, sent, strict=True)
    )
    return RoundTrials(team.size, steps, tuple(rows))


def _copied(training: Training, batches: Iterator[Any]) -> Training:
    """Return the training of a copy, without hooks, with the attributes that torch leaves out of an optimizer's."""
    copies: dict[int, Any] = {}
    model, optimizer = copy.deepcopy((training.model, training.optimizer), copies)
    for name, value in vars(training.optimizer).items():
        if name not in vars(optimizer) and not callable(value):
            setattr(optimizer, name, copy.deepcopy(value, copies))
    return Training(model, optimizer, training.loss, batches, training.before_step)


def load_all(workers: Sequence[Worker], point: torch.Tensor) -> None:
    """Write one vector of parameters, shape (d,), to all workers of this process."""
    for worker in workers:
        load(point, worker.training.parameters)


def _fall(team: Team, choice: Choice, steps: int, before: float, key: Key) -> tuple[float, list[float], list[float]]:
    """Return the loss reduction of one choice, the part of it still in residuals, and bits per coordinate of a message.

    The reduction includes the residuals, which arrive later.  A loss that is not finite counts as twice the initial
    loss.  The two lists are empty without residuals and without compression.
    """
    point = team.workers[0].training.point()
    method = choice.method(point.numel())
    states = [method.init(point.numel()) if isinstance(method, Feedback) else None for _ in team.workers]
    lengths: list[list[int]] = [[] for _ in team.workers]
    for begun in range(0, steps, choice.tau):
        changes = []
        for i, worker in enumerate(team.workers):
            for batch in worker.batches[begun : begun + choice.tau]:
                worker.training.step(batch)
            change = point - worker.training.point()
            states[i], decoded, bits = _sent(method, states[i], change, replace(key, step=begun, rank=worker.rank))
            changes.append(decoded)
            lengths[i] += bits
        point = point - team.mean(changes)
        load_all(team.workers, point)
        _average_buffers(team)
    after = _finite(team.loss(point), before)
    residuals = [state["residual"] for state in states if state is not None]
    bits_sent = [] if choice.operator is None else [_mean_bits(team, lengths, choice.operator, point.numel())]
    if not residuals:
        return before - after, [], bits_sent
    paid = _finite(team.loss(point - team.mean(residuals)), before)
    return before - paid, [after - paid], bits_sent


def _synchronous(team: Team, steps: int, squares: Squares) -> float:
    """Return the loss after steps with the mean gradient, as in DistributedDataParallel, and add the squares."""
    for step in range(steps):
        for worker in team.workers:
            worker.training.backward(worker.batches[step])
        gradients = [worker.training.last_gradient() for worker in team.workers]
        mean = team.mean(gradients)
        squares.add(team, gradients, mean)
        for worker in team.workers:
            worker.training.use_gradient(mean)
            worker.training.apply_gradients()
        _average_buffers(team)
    return team.loss(team.workers[0].training.point())


def _finite(loss: float, before: float) -> float:
    return loss if math.isfinite(loss) else before + abs(before)


def _sent(
    method: Operator | Feedback | None, state: Any, change: torch.Tensor, key: Key
) -> tuple[Any, torch.Tensor, list[int]]:
    """Return the sender's state, the decoded message, and its bits, if there is a message."""
    if method is None or not bool(change.isfinite().all()):
        return state, change, []
    if isinstance(method, Feedback):
        after, message = method.encode(state, change, key=key)
        return after, change + state["residual"].to(change) - after["residual"].to(change), [message.bits]
    message = method.encode(change, key=key)
    return state, method.decode(message, d=change.numel(), key=key), [message.bits]


def _mean_bits(team: Team, lengths: Sequence[Sequence[int]], operator: Operator, d: int) -> float:
    """Return the mean bits per coordinate of all workers' messages, without what the operator carries besides."""
    device = team.workers[0].training.device
    means = [torch.tensor([sum(bits) / len(bits) if bits else 0.0], device=device) for bits in lengths]
    return float(team.mean(means) - operator.carried_bits(d)) / d


def _average_buffers(team: Team) -> None:
    if not team.workers[0].buffers:
        return
    mean = team.mean([flat(worker.buffers, torch.float32) for worker in team.workers])
    for worker in team.workers:
        load(mean, worker.buffers)
