"""Many seeds of one cell on simulated workers: the runs that real processes would make, step for step, at little cost.

The local steps of all seeds and workers are computed together, their averagings seed by seed by ``SimulatedWorkers``.
This is no second ``training_rounds``: there is no optimizer and no loss a worker, but one batched pass for all of them.
An ``Ensemble`` keeps every point at which a gradient was taken, so that a run of real processes can be held against it
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from operators import Key, Operator

from ...averaging.simulated import SimulatedWorkers
from ...processes.tensors import flat
from ...workloads import Draw, Workload
from .batched_gradients import Rows, draws_of_workers
from .streams import MESSAGES


@dataclass(frozen=True)
class Ensemble:
    """Parameters
    ----------
    points : tensor
        Every worker's model before every step, shape (seeds, steps, m, d).
    last : tensor
        The averaged model after the last step, shape (seeds, d).
    """

    points: torch.Tensor
    last: torch.Tensor


def run_seeds(
    workload: Workload, operator: Operator, *, tau: int, steps: int, seeds: tuple[int, ...], m: int
) -> Ensemble:
    """Run every seed as m real processes would: SGD at the workload's rate, an averaging after every tau-th step.

    For models without buffers.
    """
    models = [[workload.model() for _ in range(m)] for _ in seeds]
    everyone = [model for replicas in models for model in replicas]
    runs = [
        SimulatedWorkers(replicas, schedule=tau, operator=operator, key=Key(seed).fold_in(MESSAGES))
        for replicas, seed in zip(models, seeds, strict=True)
    ]
    rows, points = Rows(workload), []
    for draw in _draws(workload, seeds, m, steps):
        rows_before = _stacked(everyone)
        points.append(rows_before.reshape(len(seeds), m, -1))
        _step(everyone, rows.gradients(rows_before, draw)[0], workload.eta)
        for run in runs:
            run.step()
    return Ensemble(torch.stack(points, dim=1), _stacked([replicas[0] for replicas in models]))


@lru_cache(maxsize=2)
def _draws(workload: Workload, seeds: tuple[int, ...], m: int, steps: int) -> list[Draw]:
    """Return what is random of every step, one row for each seed and worker: the same for all operators and periods."""
    return [draws_of_workers(workload, seeds, m, k) for k in range(steps)]


def _stacked(models: Sequence[torch.nn.Module]) -> torch.Tensor:
    """Return the models as rows, shape (models, d)."""
    return torch.stack([flat(list(model.parameters())) for model in models])


def _step(models: Sequence[torch.nn.Module], gradients: torch.Tensor, eta: float) -> None:
    """What ``torch.optim.SGD`` does, model by model: in one call for all of them the last bit may be another."""
    with torch.no_grad():
        for model, gradient in zip(models, gradients, strict=True):
            parameters = list(model.parameters())
            for p, part in zip(parameters, gradient.split([p.numel() for p in parameters]), strict=True):
                p.add_(part.view_as(p), alpha=-eta)
