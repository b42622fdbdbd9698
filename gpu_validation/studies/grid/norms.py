"""Losses and squared gradient norms of all seeds of a cell: those of real processes, and those of simulated workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from operators import Operator

from ...distributed.collectives import gather_arrays
from ...distributed.launch import RankContext
from ...distributed.tensors import floating_tensors, load
from ...measurement.batched_gradients import Rows
from ...measurement.ensemble import Ensemble, run_seeds
from ...workloads import Workload
from .spec import Cells


@dataclass(frozen=True)
class RealRun:
    """What one rank keeps of one seed.

    Parameters
    ----------
    points : tensor
        Its own model before every step, shape (steps, d).
    last : tensor
        The averaged model at the end, shape (d,).
    """

    points: torch.Tensor
    last: torch.Tensor


@dataclass(frozen=True)
class Norms:
    """One number a seed, real ones first; the fields are those of ``Training``."""

    gradient_norm2: tuple[float, ...]
    final_loss: tuple[float, ...]
    local_gradient_norm2: tuple[float, ...] = ()
    apart: float | None = None
    compared: int = 0


def norms_of_real(workload: Workload, runs: Sequence[RealRun], *, root: bool) -> Norms:
    """Return norms and losses of any model; every rank must call it, and only the root evaluates.

    Parameters
    ----------
    root : bool
        Whether this is it.
    """
    means = [torch.stack(gather_arrays(run.points.double())).mean(dim=0) for run in runs]
    if not root:
        return Norms((), ())
    squares = [[evaluated(workload, x)[1] for x in mean] for mean in means]
    return Norms(
        gradient_norm2=tuple(sum(steps) / len(steps) for steps in squares),
        final_loss=tuple(evaluated(workload, run.last)[0] for run in runs),
    )


def norms_of_all(place: RankContext, cells: Cells, operator: Operator, tau: int, runs: Sequence[RealRun]) -> Norms:
    """Return them where simulated workers repeat the run: each rank the real seeds, and a share of the others."""
    everyone = [torch.stack(gather_arrays(run.points), dim=1) for run in runs]
    real = Ensemble(torch.stack(everyone), torch.stack([run.last for run in runs]))
    local_seeds = cells.virtual_seeds[place.rank :: place.size]
    repeated = run_seeds(
        cells.workload, operator, tau=tau, steps=cells.steps, seeds=(*cells.seeds, *local_seeds), m=place.size
    )
    n = len(runs)
    apart = max(_apart(real.points, repeated.points[:n]), _apart(real.last, repeated.last[:n]))
    apart = max(float(other) for other in gather_arrays(torch.tensor(apart)))
    table = [_table(cells.workload, real)]
    share = -(-cells.virtual // place.size)
    local_table = torch.full((share, 3), math.nan, dtype=torch.float64)
    if local_seeds:
        local_table[: len(local_seeds)] = _table(cells.workload, Ensemble(repeated.points[n:], repeated.last[n:]))
    parts = gather_arrays(local_table)
    table += [parts[i % place.size][i // place.size][None] for i in range(cells.virtual)]
    gradients, local, losses = (tuple(column.tolist()) for column in torch.cat(table).T)
    return Norms(gradients, losses, local, apart, real.points.numel() + real.last.numel())


def _apart(real: torch.Tensor, repeated: torch.Tensor) -> float:
    return 0.0 if torch.equal(real, repeated) else float((real - repeated).abs().nan_to_num(nan=math.inf).max())


def _table(workload: Workload, runs: Ensemble) -> torch.Tensor:
    """Return averages over the steps of ``|grad F|^2`` at the workers' mean and at the workers, and F at the end,
    float64.
    """
    rows, seeds, d = Rows(workload), len(runs.points), runs.points.shape[-1]
    _, at_mean = rows.evaluate(runs.points.mean(dim=2).reshape(-1, d))
    _, at_workers = rows.evaluate(runs.points.reshape(-1, d))
    last, _ = rows.evaluate(runs.last)
    averages = [at_mean.reshape(seeds, -1).mean(dim=1), at_workers.reshape(seeds, -1).mean(dim=1)]
    return torch.stack([*averages, last.double()], dim=1)


def evaluated(workload: Workload, x: torch.Tensor) -> tuple[float, float]:
    """Return (F, ``|grad F|^2``) at a vector of parameters and floating-point buffers."""
    return workload.evaluate(model_at(workload, x))


def model_at(workload: Workload, x: torch.Tensor) -> torch.nn.Module:
    """Return a model with these parameters and buffers."""
    model = workload.model()
    load(x, floating_tensors(model))
    return model
