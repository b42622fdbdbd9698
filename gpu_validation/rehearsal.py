"""A race without a network: virtual workers and a simulated clock, step for step what real processes compute.

    race = Race(Quadratic(), schedule=8, step=Constant(4e-3), seed=0, steps=400)
    record = rehearse(race, RuntimeModel(step=race.step, delay_s=16e-3, m=4))

The losses are those of ``run_races`` bit for bit where the schedule does not look at the clock; the seconds are the
runtime model's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bounds.runtime import RuntimeModel
from operators import Key

from .clock import SimulatedClock
from .deltas import Round
from .race import GRADIENT, MESSAGE, STEPS, Race
from .tensors import flat, floating_tensors, load
from .virtual import VirtualWorkers

Record = dict[str, Any]


def rehearse(race: Race, runtime: RuntimeModel, *, locally: bool = False) -> Record:
    """Run a race on virtual workers; plain values as in ``run_races``.

    runtime : of ``m`` workers, with the law of their steps; the race's own laws are not looked at.
    locally : also record the mean over workers of |grad F|^2 at their own models before every step.
    The record holds ``seconds``, ``step``, ``losses`` and ``bits`` at some averagings, the start included, ``rounds``,
    ``steps_done``, ``took_s``, and, if traced, ``gradient2``: |grad F|^2 at the workers' mean before every step.
    """
    m, key = runtime.workers(), Key(race.seed)
    race.workload.require_workers(m)
    models = [race.workload.model() for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=race.workload.eta) for model in models]
    clock = SimulatedClock(runtime, m=m, key=key.fold(STEPS))
    settings: dict[str, Any] = {"schedule": race.schedule, "operator": race.operator, "steps": race.steps}
    workers = VirtualWorkers(models, optimizers, key=key.fold(MESSAGE), clock=clock, **settings)
    watched, rounds = floating_tensors(models[0]), list[list[Round]]()
    seconds, kept, gradients, local = [0.0], [flat(watched)], list[float](), list[float]()
    while not _over(race, clock.seconds(), workers.rhythm.total_steps):
        accounts = None
        while accounts is None:
            if race.trace:
                gradients.append(_at_the_mean(race, models))
            if locally:
                local.append(float(np.mean([race.workload.evaluate(model)[1] for model in models])))
            accounts = workers.step(_local_steps(race, models, optimizers, workers.rhythm.total_steps))
        rounds.append(accounts)
        seconds.append(clock.seconds())
        kept.append(flat(watched))
    return {
        "workload": race.workload.name,
        "schedule": repr(race.schedule),
        "seed": race.seed,
        "m": m,
        "eta": race.workload.eta,
        **_looked_at(race, seconds, kept, [accounts[0] for accounts in rounds]),
        "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(accounts[0].tau for accounts in rounds)],
        "steps_done": workers.rhythm.total_steps,
        "took_s": clock.seconds(),
        "gradient2": gradients,
        "local_gradient2": local,
    }


def _over(race: Race, seconds: float, steps: int) -> bool:
    return seconds >= (race.budget_s or math.inf) or steps >= (race.steps or math.inf)


def _local_steps(
    race: Race, models: Sequence[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer], k: int
) -> list[torch.Tensor]:
    """One step of every worker, by the keys that its process would use."""
    losses = []
    for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
        optimizer.param_groups[0]["lr"] = race.eta(k)
        optimizer.zero_grad()
        loss = race.workload.loss(model, key=Key(race.seed, step=k, rank=rank).fold(GRADIENT))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def _at_the_mean(race: Race, models: Sequence[torch.nn.Module]) -> float:
    model = race.workload.model()
    load(torch.stack([flat(list(own.parameters())) for own in models]).mean(dim=0), list(model.parameters()))
    return race.workload.evaluate(model)[1]


def _loss(race: Race, watched: torch.Tensor) -> float:
    """F, computed as for real processes: by ``evaluate`` its last bit may differ."""
    model = race.workload.model()
    load(watched, floating_tensors(model))
    with torch.no_grad():
        return float(race.workload.objective(model))


def _looked_at(race: Race, seconds: Sequence[float], kept: Sequence[torch.Tensor], rounds: Sequence[Round]) -> Record:
    """Losses at some averagings, evenly in time."""
    wanted = np.linspace(0.0, seconds[-1], race.points + 1)
    chosen = sorted({min(int(i), len(seconds) - 1) for i in np.searchsorted(seconds, wanted)})
    steps = np.cumsum([0, *(r.tau for r in rounds)])
    bits = np.cumsum([0, *(sum(r.bits) for r in rounds)])
    return {
        "seconds": [seconds[i] for i in chosen],
        "step": [int(steps[i]) for i in chosen],
        "bits": [int(bits[i]) for i in chosen],
        "losses": [_loss(race, kept[i]) for i in chosen],
    }
