"""Losses along a race, taken afterwards from the averaged models that were kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ...processes.collectives import gather_arrays
from ...processes.launch import RankContext
from ...processes.tensors import floating_tensors, load
from ...records.round import Round
from ...records.storage import Record
from ...workloads import Workload
from .spec import TrainingRun


@dataclass
class Snapshots:
    """What one rank collects while the clock runs.

    Parameters
    ----------
    seconds : list of float
        Of the start and of every averaging.
    models : list of tensor
        Of the start and of every averaging.
    rounds : list of Round
        Their accounts.
    trace : list of tensor
        Parameters before every step, if traced.
    rule : Record, optional
        What the schedule knows at the end.
    probes : int, optional
        How often it probed.
    """

    seconds: list[float]
    models: list[torch.Tensor]
    rounds: list[Round]
    trace: list[torch.Tensor]
    rule: Record = field(default_factory=dict)
    probes: int = 0


def evenly(seconds: Sequence[float], points: int) -> list[int]:
    """Return indices of at most ``points`` + 1 averagings, the first and the last included, evenly in time."""
    times = np.linspace(seconds[0], seconds[-1], points + 1)
    return sorted(set(np.searchsorted(seconds, times).tolist()))


def outline(run: TrainingRun, m: int, rounds: Sequence[Round]) -> Record:
    """Return what a record says of any run: its settings, [tau, number of rounds] in order, and the steps done."""
    return {
        "workload": run.workload.name,
        "schedule": repr(run.schedule),
        "seed": run.seed,
        "m": m,
        "eta": run.workload.eta,
        "rounds": [[tau, len(list(same))] for tau, same in itertools.groupby(r.tau for r in rounds)],
        "steps_done": sum(r.tau for r in rounds),
    }


def at_points(seconds: Sequence[float], rounds: Sequence[Round], chosen: Sequence[int]) -> Record:
    """Return ``seconds``, ``step``, ``taus`` (of the round that ended) and ``bits`` (of all messages so far) at the
    points.
    """
    steps = np.cumsum([0, *(r.tau for r in rounds)])
    bits = np.cumsum([0, *(sum(r.bits) for r in rounds)])
    return {
        "seconds": [seconds[i] for i in chosen],
        "step": [int(steps[i]) for i in chosen],
        "taus": [rounds[max(i - 1, 0)].tau if rounds else 0 for i in chosen],
        "bits": [int(bits[i]) for i in chosen],
    }


def look(workload: Workload, model: torch.nn.Module, watched: torch.Tensor) -> tuple[float, float | None]:
    """Return (F, held-out accuracy) of a kept model.

    Parameters
    ----------
    model : Module
        One to load it into.
    """
    return objective(workload, model, watched), workload.accuracy(model)


def objective(workload: Workload, model: torch.nn.Module, watched: torch.Tensor) -> float:
    """Return F of a kept model, which is loaded."""
    load(watched, floating_tensors(model))
    with torch.no_grad():
        return float(workload.objective(model))


def evaluate_snapshots(
    place: RankContext, workload: Workload, kept: Snapshots, points: int, *, alike: bool = True
) -> Record:
    """Return loss and accuracy at some of the kept models, shared out over the ranks.

    Parameters
    ----------
    alike : bool
        Whether all ranks have kept the same models; else those of rank 0 are looked at, by itself.
    """
    seconds = gather_arrays(torch.tensor(kept.seconds, dtype=torch.float64))[0].tolist()  # by rank 0's clock
    chosen = evenly(seconds, points)
    model, rows = workload.model().to(place.device), torch.zeros(len(chosen), 2, dtype=torch.float64)
    for i in range(place.rank, len(chosen), place.size) if alike else range(0 if place.rank else len(chosen)):
        loss, accuracy = look(workload, model, kept.models[chosen[i]])
        rows[i] = torch.tensor([loss, math.nan if accuracy is None else accuracy], dtype=torch.float64)
    losses, accuracies = torch.stack(gather_arrays(rows)).sum(dim=0).T.tolist()
    return {
        **at_points(seconds, kept.rounds, chosen),
        "losses": losses,
        "accuracies": [None if math.isnan(a) else a for a in accuracies],
    }


def gradients(place: RankContext, workload: Workload, trace: Sequence[torch.Tensor]) -> list[float]:
    """Return ``|grad F|^2`` at the mean of the workers' models before every step, shared out over the ranks."""
    if not trace:
        return []
    mean = torch.stack(gather_arrays(torch.stack(list(trace)))).mean(dim=0)
    model, values = workload.model().to(place.device), torch.zeros(len(mean), dtype=torch.float64)
    for k in range(place.rank, len(mean), place.size):
        load(mean[k], list(model.parameters()))
        values[k] = workload.evaluate(model)[1]
    return torch.stack(gather_arrays(values)).sum(dim=0).tolist()
