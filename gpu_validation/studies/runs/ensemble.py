"""Many seeds of one cell on simulated workers: the runs that real processes would make, step for step, at little cost.

The local steps of all seeds and workers are computed together, their averagings seed by seed by ``SimulatedWorkers``.
This is no second ``training_rounds``: there is no optimizer and no loss a worker, but one batched pass for all of them.
An ``Ensemble`` keeps every point at which a gradient was taken, so that a run of real processes can be held against it
bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from operators import Key, Operator

from ...averaging.simulated import SimulatedWorkers
from ...processes.tensors import flat
from ...workloads import Draw, Loss, Workload
from .spec import MESSAGES, MINI_BATCHES


def draws_of_workers(workload: Workload, seeds: Iterable[int], m: int, k: int) -> Draw:
    """Return what m workers of every seed draw for local step k.

    Parameters
    ----------
    workload : Workload
        Whose mini-batches they are.
    seeds : iterable of int
        Of the runs.
    m : int
        Workers of each.
    k : int
        Local step, from 0.

    Returns
    -------
    tuple of tensor
        With a row for each seed and worker, in this order.
    """
    keys = [Key(seed, step=k, rank=rank).fold_in(MINI_BATCHES) for seed in seeds for rank in range(m)]
    return tuple(map(torch.stack, zip(*(workload.draw(key=key) for key in keys), strict=True)))


class _Whole(Loss):
    """F itself as a module."""

    def forward(self) -> torch.Tensor:  # type: ignore[override]
        """Return a scalar."""
        return self.workload.objective(self.model)


class Rows:
    """Losses and gradients of many models at once, each of them a row, shape (rows, d)."""

    def __init__(self, workload: Workload) -> None:
        template = workload.model()
        self._loss, self._whole = Loss(workload, template), _Whole(workload, template)
        self._shapes = {f"model.{name}": p.shape for name, p in template.named_parameters()}

    def gradients(self, rows: torch.Tensor, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """Return gradients of one step's loss, shape (rows, d), and losses, shape (rows,).

        Parameters
        ----------
        rows : tensor, shape (rows, d)
            One model a row, its parameters in order.
        draw : Draw
            What the workload draws, with a row for each model.
        """
        return self._gradients(self._loss, rows, draw)

    def evaluate(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return F and ``|grad F|^2``, each of shape (rows,)."""
        gradients, values = self._gradients(self._whole, rows, ())
        return values, gradients.double().square().sum(dim=1)

    def _gradients(self, module: Loss, rows: torch.Tensor, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        def loss(parameters: dict[str, torch.Tensor], *own: torch.Tensor) -> Any:
            return torch.func.functional_call(module, parameters, own)

        parts = rows.split([shape.numel() for shape in self._shapes.values()], dim=1)
        named = {
            name: part.reshape(-1, *shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }
        gradients, values = torch.func.vmap(torch.func.grad_and_value(loss))(named, *draw)
        return torch.cat([gradients[name].reshape(len(rows), -1) for name in self._shapes], dim=1), values


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
