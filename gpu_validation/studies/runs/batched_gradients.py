"""Losses and gradients of many models by one batched pass, and what all workers of some seeds draw for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from operators import Key

from ...workloads import Draw, Loss, Workload
from .streams import MINI_BATCHES


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
