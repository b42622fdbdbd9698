"""Many simulations at once: runs that differ in seed, schedule and learning rate, each of their steps one batched pass.
::

    records = simulate_together(runs, RuntimeModel(step=ShiftedExponential(7e-3, 1e-3), delay_s=32e-3, m=4))

The record of every race is that of ``simulate`` bit for bit, for models on which batched and single matrix products
agree; it takes a tenth of the time or less, which is what makes tuning over many learning rates and seeds affordable.
It is no second ``training_rounds``: runs that end at different times share a pass, in which no worker has an optimizer
or a loss of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch

from bounds.runtime import RuntimeModel
from bounds.schedules import Schedule
from operators import Key

from ...averaging.pacing.clock import SimulatedClock
from ...averaging.pacing.inputs import PeriodController
from ...processes.reduction import fold
from ...processes.tensors import flat
from ...records.round import Round
from ...records.storage import Record
from .curves import at_points, evenly, look, objective
from .ensemble import Rows, draws_of_workers
from .local_steps import Replica, common_model
from .simulation import engine_of
from .spec import STEP_TIMES, TrainingRun

MOMENTUM = {"sgd": 0.0, "momentum": 0.9}


def simulate_together(
    races: Sequence[TrainingRun],
    runtime: RuntimeModel,
    *,
    looks: Sequence[float] | None = None,
    until: Callable[[Sequence[float], Sequence[float]], bool] = lambda *_: False,
) -> list[Record]:
    """Run races on simulated workers, step by step together; one record each, as of ``simulate``.

    Parameters
    ----------
    looks : sequence of float or None, optional
        Increasing seconds at which losses are taken, each at the first averaging at or after it, with the accuracy at
        the end alone; evenly over the whole race if left out.
    until : callable, optional
        Of the seconds and losses of the looks so far; a race ends where it says yes.

    Raises
    ------
    ValueError
        For races of different workloads, a trace, or an optimizer other than SGD with or without momentum, and for
        models with buffers.

    Notes
    -----
    A race whose loss is no longer finite ends there, and its record says ``diverged``.
    """
    if not races:
        return []
    alike = {replace(cast(Any, race.workload), eta=1.0) for race in races}  # all are dataclasses with a rate
    if len(alike) > 1:
        raise ValueError(f"runs are simulated together on one workload; got {len(alike)} of them")
    for race in races:
        if race.trace or race.optimizer not in MOMENTUM:
            raise ValueError(f"only SGD without a trace is simulated together; got {race!r}")
    workload, m = races[0].workload, runtime.workers()
    if any(True for _ in workload.model().buffers()):
        raise ValueError(f"{workload.name} has buffers, which are not simulated together: simulate each by itself")
    rows, start = Rows(workload), flat(list(workload.model().parameters()))
    workload.require_workers(m)
    clocks = [SimulatedClock(runtime, m=m, key=Key(race.seed).fold_in(STEP_TIMES)) for race in races]
    lanes = [_lane(race, clock, start, looks, until) for race, clock in zip(races, clocks, strict=True)]
    active = _stacked(lanes, m)
    for k in itertools.count():
        gradients, losses = _pass(rows, active, m, k)
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

    race: TrainingRun
    clock: SimulatedClock
    start: torch.Tensor
    looks: Sequence[float] | None
    until: Callable[[Sequence[float], Sequence[float]], bool]
    vectors: torch.Tensor = field(init=False)  # shape (m, d), set anew when other lanes have ended
    moved: torch.Tensor | None = None  # the momentum, shape (m, d)
    round_losses: list[list[float]] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    ended: bool = False
    diverged: bool = False

    def __post_init__(self) -> None:
        self.periods = PeriodController(self.race.schedule, self.race.steps)  # type: ignore[arg-type]  # not "auto"
        self.seconds, self.kept, self.model = [0.0], [self.start], self.race.workload.model()
        self.seen: dict[int, tuple[float, float | None]] = {}
        if self.looks is not None:
            self._look()

    def step(self, gradient: torch.Tensor, losses: list[float], k: int) -> None:
        """Make one local step of all workers, and the averaging if one is due."""
        if not all(map(math.isfinite, losses)):
            self.ended = self.diverged = True
            return
        momentum, eta = MOMENTUM[self.race.optimizer], self.race.eta(k)
        if momentum:
            gradient = self.moved = gradient.clone() if self.moved is None else self.moved.mul_(momentum).add_(gradient)
        self.vectors.add_(gradient, alpha=-eta)
        if self.periods.adapts:
            self.round_losses.append(losses)
            if not self.periods.tau:
                self._decide(eta)
        if self.periods.count():
            self._average(eta)

    def set_models(self, vectors: torch.Tensor) -> None:
        """Keep the workers' parameters, shape (m, d), in other memory, which has them already."""
        self.vectors = vectors

    def _average(self, eta: float) -> None:
        m, d = self.vectors.shape
        mean = fold(list(self.vectors))
        self.vectors.copy_(mean)
        bits = (8 * mean.element_size() * d,) * m
        account = Round(self.periods.rounds, self.periods.local_steps, bits, 0.0, math.nan)
        self.clock.advance_round(self.periods.local_steps, bits, range(m))
        self.periods.end_round()
        if self.periods.adapts:
            self._decide(eta)
        self.round_losses.clear()
        self._ended_round(account, mean)

    def _ended_round(self, account: Round, mean: torch.Tensor) -> None:
        """Keep what a round has ended with, and look at it if it is time."""
        self.rounds.append(account)
        before, now = self.seconds[-1], self.clock.seconds()
        self.seconds.append(now)
        self.ended = self.race.is_over(now, self.periods.total_steps)
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
        rows = [
            self.periods.row([losses[i] for losses in self.round_losses], self.clock.seconds(), eta) for i in everyone
        ]
        self.periods.decide(rows, everyone)

    def record(self) -> Record:
        """Return what became of it; looks that found no number are left out."""
        if self.looks is None:
            chosen = evenly(self.seconds, self.race.points)
            self.seen = {i: look(self.race.workload, self.model, self.kept[i]) for i in chosen}
        elif not self.diverged:
            self.seen[len(self.seconds) - 1] = look(self.race.workload, self.model, self.kept[-1])
        finite = {i: values for i, values in self.seen.items() if math.isfinite(values[0])}
        return {
            "workload": self.race.workload.name,
            "schedule": repr(self.race.schedule),
            "seed": self.race.seed,
            "m": len(self.vectors),
            "eta": self.race.workload.eta,
            **at_points(self.seconds, self.rounds, list(finite)),
            "losses": [loss for loss, _ in finite.values()],
            "accuracies": [accuracy for _, accuracy in finite.values()],
            "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(r.tau for r in self.rounds)],
            "steps_done": sum(r.tau for r in self.rounds),
            "took_s": self.seconds[-1],
            "diverged": self.diverged,
        }


class _EngineLane(_Lane):
    """A race whose rounds are those of ``SimulatedWorkers``: operators, outer steps, averages in flight, "auto"."""

    def __post_init__(self) -> None:
        m = self.clock.m
        self.replicas = [Replica.of(self.race, rank) for rank in range(m)]
        self.engine = engine_of(self.race, self.replicas, self.clock)
        self.periods = self.engine.periods
        self.seconds, self.kept, self.model = [0.0], [self.start], self.race.workload.model()
        self.seen = {}
        if self.looks is not None:
            self._look()

    def set_models(self, vectors: torch.Tensor) -> None:
        """Let the workers' models be views of other memory, which has their parameters already."""
        super().set_models(vectors)
        for replica, vector in zip(self.replicas, vectors, strict=True):
            parameters = list(replica.model.parameters())
            for p, part in zip(parameters, vector.split([p.numel() for p in parameters]), strict=True):
                p.data = part.view(p.shape)

    def step(self, gradient: torch.Tensor, losses: list[float], k: int) -> None:
        """Make one local step of all workers, and what the engine does after it."""
        if not all(map(math.isfinite, losses)):
            self.ended = self.diverged = True
            return
        eta = self.race.eta(k)
        self.vectors.add_(gradient, alpha=-eta)
        for replica, row in zip(self.replicas, gradient, strict=True):
            replica.optimizer.param_groups[0]["lr"] = eta
            if self.engine.settings.measures:
                parameters = list(replica.model.parameters())
                for p, part in zip(parameters, row.split([p.numel() for p in parameters]), strict=True):
                    p.grad = part.view(p.shape)
        accounts = self.engine.count(losses, [partial(replica.gradient, k) for replica in self.replicas])
        if accounts:
            watched = list(self.replicas[0].model.parameters())
            self._ended_round(accounts[0], common_model(self.engine, watched))


def _lane(race: TrainingRun, *details: Any) -> _Lane:
    """Return the quick lane where it will do."""
    whole = race.operator is None and race.exchange is None and race.outer is None
    measures = race.schedule == "auto" or (isinstance(race.schedule, Schedule) and race.schedule.measures)
    plain = whole and not race.merge.in_flight and not measures
    if not plain and MOMENTUM[race.optimizer]:
        raise ValueError(
            f"only SGD is simulated together with an outer step, operators, averages in flight or auto; got {race!r}"
        )
    return (_Lane if plain else _EngineLane)(race, *details)


def _stacked(lanes: Sequence[_Lane], m: int) -> list[_Lane]:
    """Return the lanes, their parameters copied together."""
    parts = [lane.vectors if hasattr(lane, "vectors") else lane.start.expand(m, -1) for lane in lanes]
    together = torch.stack(parts)
    for lane, vectors in zip(lanes, together, strict=True):
        lane.set_models(vectors)
    return list(lanes)


def _pass(rows: Rows, lanes: Sequence[_Lane], m: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (gradients of shape (lanes, m, d), losses of shape (lanes, m)) of local step k."""
    workload = lanes[0].race.workload
    drawn = {seed: draws_of_workers(workload, [seed], m, k) for seed in {lane.race.seed for lane in lanes}}
    draws = tuple(torch.cat(parts) for parts in zip(*(drawn[lane.race.seed] for lane in lanes), strict=True))
    gradients, losses = rows.gradients(torch.cat([lane.vectors for lane in lanes]), draws)
    return gradients.view(len(lanes), m, -1), losses.view(len(lanes), m)
