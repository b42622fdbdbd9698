"""Many rehearsals at once: races that differ in seed, schedule and learning rate, each of their steps one batched pass.

    records = rehearse_together(races, RuntimeModel(step=ShiftedExponential(7e-3, 1e-3), delay_s=32e-3, m=4))

The record of every race is that of ``rehearse`` bit for bit, for models on which batched and single matrix products
agree; it takes a tenth of the time or less, which is what makes tuning over many learning rates and seeds affordable.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch

from bounds.runtime import RuntimeModel
from operators import Key

from .clock import SimulatedClock
from .curves import Record, at_points, evenly, look, objective
from .deltas import Round
from .race import GRADIENT, STEPS, Race, over
from .rhythm import Rhythm
from .tensors import flat, fold, load
from .workloads import Loss, Workload

MOMENTUM = {"sgd": 0.0, "momentum": 0.9}


def rehearse_together(
    races: Sequence[Race],
    runtime: RuntimeModel,
    *,
    looks: Sequence[float] | None = None,
    until: Callable[[Sequence[float], Sequence[float]], bool] = lambda *_: False,
) -> list[Record]:
    """Run races on virtual workers, step by step together; one record each, as of ``rehearse``.

    looks : increasing seconds at which losses are taken, each at the first averaging at or after it, with the accuracy
    at the end alone; evenly over the whole race if left out.  until : of the seconds and losses of the looks so far; a
    race ends where it says yes.
    A race whose loss is no longer finite ends there, and its record says ``diverged``.
    Raises ValueError for races of different workloads, an operator, a trace, or an optimizer other than SGD with or
    without momentum, and for models with buffers.
    """
    if not races:
        return []
    alike = {replace(cast(Any, race.workload), eta=1.0) for race in races}  # all are dataclasses with a rate
    if len(alike) > 1:
        raise ValueError(f"races are rehearsed together on one workload; got {len(alike)} of them")
    for race in races:
        if race.operator is not None or race.trace or race.optimizer not in MOMENTUM:
            raise ValueError(f"only whole models and SGD, without a trace, are rehearsed together; got {race!r}")
    passes = _Passes(races[0].workload)
    m = runtime.workers()
    races[0].workload.require_workers(m)
    clocks = [SimulatedClock(runtime, m=m, key=Key(race.seed).fold(STEPS)) for race in races]
    lanes = [_Lane(race, clock, passes.start, looks, until) for race, clock in zip(races, clocks, strict=True)]
    active = _stacked(lanes, m)
    for k in itertools.count():
        gradients, losses = passes(active, m, k)
        for lane, gradient, loss in zip(active, gradients, losses.tolist(), strict=True):
            lane.step(gradient, loss, k)
        going = [lane for lane in active if not lane.ended]
        if not going:
            break
        active = active if len(going) == len(active) else _stacked(going, m)
    return [lane.record() for lane in lanes]


@dataclass
class _Lane:
    """One race: its workers' parameters, a piece of all races' ones, and where it stands."""

    race: Race
    clock: SimulatedClock
    start: torch.Tensor
    looks: Sequence[float] | None
    until: Callable[[Sequence[float], Sequence[float]], bool]
    vectors: torch.Tensor = field(init=False)  # shape (m, d), set anew when other lanes have ended
    moved: torch.Tensor | None = None  # the momentum, shape (m, d)
    heard: list[list[float]] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    ended: bool = False
    diverged: bool = False

    def __post_init__(self) -> None:
        self.rhythm = Rhythm(self.race.schedule, self.race.steps)  # type: ignore[arg-type]  # not "auto"
        self.seconds, self.kept, self.model = [0.0], [self.start], self.race.workload.model()
        self.seen: dict[int, tuple[float, float | None]] = {}
        if self.looks is not None:
            self._look()

    def step(self, gradient: torch.Tensor, losses: list[float], k: int) -> None:
        """One local step of all workers, and the averaging if one is due."""
        if not all(map(math.isfinite, losses)):
            self.ended = self.diverged = True
            return
        momentum, eta = MOMENTUM[self.race.optimizer], self.race.eta(k)
        if momentum:
            gradient = self.moved = gradient.clone() if self.moved is None else self.moved.mul_(momentum).add_(gradient)
        self.vectors.add_(gradient, alpha=-eta)
        if self.rhythm.adapts:
            self.heard.append(losses)
            if not self.rhythm.tau:
                self._decide(eta)
        if self.rhythm.count():
            self._average(eta)

    def _average(self, eta: float) -> None:
        m, d = self.vectors.shape
        mean = fold(list(self.vectors))
        self.vectors.copy_(mean)
        bits = (8 * mean.element_size() * d,) * m
        self.rounds.append(Round(self.rhythm.rounds, self.rhythm.local_steps, bits, 0.0, math.nan))
        self.clock.pass_round(self.rhythm.local_steps, bits, range(m))
        self.rhythm.end_round()
        if self.rhythm.adapts:
            self._decide(eta)
        self.heard.clear()
        before, now = self.seconds[-1], self.clock.seconds()
        self.seconds.append(now)
        self.ended = over(self.race, now, self.rhythm.total_steps)
        if self.looks is None:
            self.kept.append(mean)
            return
        self.kept = [mean]
        if self.ended or any(before < t <= now for t in self.looks):
            self._look()
            losses = [loss for loss, _ in self.seen.values()]
            self.diverged = not math.isfinite(losses[-1])
            self.ended = self.ended or self.diverged or self.until([self.seconds[i] for i in self.seen], losses)

    def _look(self) -> None:
        self.seen[len(self.seconds) - 1] = objective(self.race.workload, self.model, self.kept[-1]), None

    def _decide(self, eta: float) -> None:
        everyone = range(len(self.vectors))
        rows = [self.rhythm.row([losses[i] for losses in self.heard], self.clock.seconds(), eta) for i in everyone]
        self.rhythm.decide(rows, everyone)

    def record(self) -> Record:
        """What became of it; looks that found no number are left out."""
        if self.looks is None:
            chosen = evenly(self.seconds, self.race.points)
            self.seen = {i: look(self.race.workload, self.model, self.kept[i]) for i in chosen}
        elif not self.diverged:
            self.seen[len(self.seconds) - 1] = look(self.race.workload, self.model, self.kept[-1])
        seen = {i: found for i, found in self.seen.items() if math.isfinite(found[0])}
        return {
            "workload": self.race.workload.name,
            "schedule": repr(self.race.schedule),
            "seed": self.race.seed,
            "m": len(self.vectors),
            "eta": self.race.workload.eta,
            **at_points(self.seconds, self.rounds, list(seen)),
            "losses": [loss for loss, _ in seen.values()],
            "accuracies": [accuracy for _, accuracy in seen.values()],
            "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(r.tau for r in self.rounds)],
            "steps_done": sum(r.tau for r in self.rounds),
            "took_s": self.seconds[-1],
            "diverged": self.diverged,
        }


def _stacked(lanes: Sequence[_Lane], m: int) -> list[_Lane]:
    """The lanes, their parameters copied together."""
    parts = [lane.vectors if hasattr(lane, "vectors") else lane.start.expand(m, -1) for lane in lanes]
    together = torch.stack(parts)
    for lane, vectors in zip(lanes, together, strict=True):
        lane.vectors = vectors
    return list(lanes)


class _Passes:
    """Losses and gradients of all workers of all lanes by one batched pass.

    start : the model's parameters as one vector.
    """

    def __init__(self, workload: Workload) -> None:
        model = workload.model()
        if any(True for _ in model.buffers()):
            raise ValueError(f"{workload.name} has buffers, which are not rehearsed together: rehearse each by itself")
        self.workload, self.loss = workload, Loss(workload, model)
        self.parts = [(f"model.{name}", p.shape, p.numel()) for name, p in model.named_parameters()]
        self.start = flat(list(model.parameters()))
        load(self.start, list(model.parameters()))
        self.batched = torch.func.vmap(torch.func.grad_and_value(self._single))

    def _single(self, vector: torch.Tensor, *draw: torch.Tensor) -> torch.Tensor:
        pieces = vector.split([n for _, _, n in self.parts])
        named = {name: piece.view(shape) for (name, shape, _), piece in zip(self.parts, pieces, strict=True)}
        value: torch.Tensor = torch.func.functional_call(self.loss, named, draw)
        return value

    def __call__(self, lanes: Sequence[_Lane], m: int, k: int) -> tuple[Any, torch.Tensor]:
        """(gradients of shape (lanes, m, d), losses of shape (lanes, m)) of local step k."""
        drawn = {seed: self._draws(seed, m, k) for seed in {lane.race.seed for lane in lanes}}
        draws = [torch.cat(parts) for parts in zip(*(drawn[lane.race.seed] for lane in lanes), strict=True)]
        vectors = torch.cat([lane.vectors for lane in lanes])
        gradients, losses = self.batched(vectors, *draws)
        return gradients.view(len(lanes), m, -1), losses.view(len(lanes), m)

    def _draws(self, seed: int, m: int, k: int) -> list[torch.Tensor]:
        """What the workers of a seed draw, each tensor with the worker as its first dimension."""
        keys = [Key(seed, step=k, rank=rank).fold(GRADIENT) for rank in range(m)]
        return [torch.stack(parts) for parts in zip(*(self.workload.draw(key=key) for key in keys), strict=True)]
