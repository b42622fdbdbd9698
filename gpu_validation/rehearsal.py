"""A race without a network: virtual workers and a simulated clock, step for step what real processes compute.

    race = Race(Quadratic(), schedule=8, step=Constant(4e-3), seed=0, steps=400)
    record = rehearse(race, RuntimeModel(step=race.step, delay_s=16e-3, m=4))

The losses are those of ``run_races`` bit for bit where the schedule does not look at the clock, or where the race goes
by the same model's clock (``Race.runtime``); the seconds are the runtime model's.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bounds.runtime import RuntimeModel
from operators import Key

from .clock import SimulatedClock
from .curves import at_points, evenly, look
from .deltas import Round
from .race import GRADIENT, MESSAGE, OPTIMIZERS, STEPS, Race, over
from .tensors import flat, floating_tensors, load
from .virtual import VirtualWorkers

Record = dict[str, Any]


def rehearse(race: Race, runtime: RuntimeModel, *, locally: bool = False) -> Record:
    """Run a race on virtual workers; plain values as in ``run_races``.

    runtime : of ``m`` workers, with the law of their steps; the race's own laws are not looked at.
    locally : also record the mean over workers of |grad F|^2 at their own models before every step.
    The record holds ``seconds``, ``step``, ``losses``, ``accuracies``, ``taus`` and ``bits`` at some averagings, the
    start included, ``rounds``, ``steps_done``, ``took_s``, and, if traced, ``gradient2``: |grad F|^2 at the workers'
    mean before every step.
    """
    m, key = runtime.workers(), Key(race.seed)
    race.workload.require_workers(m)
    models = [race.workload.model() for _ in range(m)]
    optimizers = [OPTIMIZERS[race.optimizer](model.parameters(), lr=race.workload.eta) for model in models]
    clock = SimulatedClock(runtime, m=m, key=key.fold(STEPS))
    settings: dict[str, Any] = {"schedule": race.schedule, "operator": race.operator, "steps": race.steps}
    workers = VirtualWorkers(models, optimizers, key=key.fold(MESSAGE), clock=clock, **settings)
    watched, rounds = floating_tensors(models[0]), list[list[Round]]()
    seconds, kept, gradients, local = [0.0], [flat(watched)], list[float](), list[float]()
    while not over(race, clock.seconds(), workers.rhythm.total_steps):
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


def _looked_at(race: Race, seconds: Sequence[float], kept: Sequence[torch.Tensor], rounds: Sequence[Round]) -> Record:
    """Losses and accuracies at some averagings, evenly in time."""
    chosen, model = evenly(seconds, race.points), race.workload.model()
    looks = [look(race.workload, model, kept[i]) for i in chosen]
    losses, accuracies = [loss for loss, _ in looks], [accuracy for _, accuracy in looks]
    return {**at_points(seconds, rounds, chosen), "losses": losses, "accuracies": accuracies}
