"""What the exact models say beforehand: the quadratic of a task at its minimiser, and seconds to the targets on it.

Curvature, gradient noise and the workers' own gradients are those at the minimiser, in the eigenbasis of the Hessian,
outside of which nothing is kept; the start is scaled so that the loss begins where the task's does.  The directions of
smallest curvature, in which hardly anything happens, are taken together.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from torch.func import functional_call

from bounds.dynamics.outer import OuterStep, Workers, expected_loss, second_moments
from bounds.runtime import seconds_per_step_in_flight

from ...distributed.tensors import flat
from ...records.storage import Record
from ...verdicts.time_to_target import arrival
from ...workloads import Loss
from ...workloads.supervised import Supervised
from .problems import METHODS, PREDICTED, WORKERS, Task, Trial, budget_s, runtime, steps_in_flight
from .search import search

DIRECTIONS = 60  # of largest curvature, kept apart
Share = tuple[torch.Tensor, torch.Tensor]  # indices of a worker's samples, and the weight of their mean loss
CHUNK = 64  # vectors that are multiplied by the Hessian at once
SEARCH = 300  # steps of L-BFGS to the minimiser


class Landscape:
    """The objective of a workload as a function of a vector, in float64.

    Parameters
    ----------
    workload : Supervised
        Whose samples and losses they are.
    """

    def __init__(self, workload: Supervised) -> None:
        self.workload, model = workload, workload.model().double()
        self.start = flat(list(model.parameters())).detach()
        self._loss = Loss(workload, model)
        self._shapes = {f"model.{name}": p.shape for name, p in model.named_parameters()}

    def value(self, x: torch.Tensor, chosen: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return the weighted mean loss over some samples, and the decay.

        Parameters
        ----------
        x : tensor, shape (d,)
            Parameters.
        chosen : tensor
            Indices of samples.
        weight : tensor
            Factor of their mean loss.
        """
        parts = x.split([shape.numel() for shape in self._shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}
        return cast(torch.Tensor, functional_call(self._loss, named, (chosen, weight)))

    def shares(self) -> list[Share]:
        """Return the samples of every worker and the weight of their mean loss; one share if all have all of them."""
        n = len(self.workload.data().train)
        parts = [self.workload.shard(rank) for rank in range(self.workload.workers or 1)]
        return [
            (torch.from_numpy(part), torch.tensor(len(part) * len(parts) / n, dtype=torch.float64)) for part in parts
        ]

    def mean(self, x: torch.Tensor) -> torch.Tensor:
        """Return F.

        Parameters
        ----------
        x : tensor, shape (d,)
            Parameters.
        """
        shares = self.shares()
        return torch.stack([self.value(x, *share) for share in shares]).sum() / len(shares)

    def minimiser(self) -> torch.Tensor:
        """Return where L-BFGS from the start ends, shape (d,)."""
        x = self.start.clone().requires_grad_()
        search = torch.optim.LBFGS(
            [x], max_iter=SEARCH, history_size=30, line_search_fn="strong_wolfe", tolerance_grad=1e-9
        )

        def again() -> torch.Tensor:
            value = self.mean(x)
            (x.grad,) = torch.autograd.grad(value, x)
            return value

        search.step(again)
        return x.detach()

    def products(self, x: torch.Tensor, vectors: torch.Tensor, share: Share) -> torch.Tensor:
        """Return the Hessian of a share's loss times vectors, shape (n, d).

        Parameters
        ----------
        x : tensor, shape (d,)
            Where it is taken.
        vectors : tensor, shape (n, d)
            The vectors.
        share : tuple
            Samples and weight.
        """
        y = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self.value(y, *share), y, create_graph=True)
        return torch.cat([_batched(slope, y, part) for part in vectors.split(CHUNK)])


def _batched(values: torch.Tensor, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the gradients of weighted sums of values, a row each."""
    return torch.autograd.grad(values, x, grad_outputs=weights, retain_graph=True, is_grads_batched=True)[0]


@lru_cache(maxsize=8)
def quadratic_of(task: Task) -> Workers:
    """Return the workers' quadratics at a task's minimiser.

    Parameters
    ----------
    task : Task
        Of a supervised workload.
    """
    workload = cast(Supervised, task.workload)
    landscape = Landscape(workload)
    x, shares = landscape.minimiser(), landscape.shares()
    d = len(x)
    hessian = torch.stack([landscape.products(x, torch.eye(d, dtype=torch.float64), s) for s in shares])
    _, basis = torch.linalg.eigh(hessian.mean(dim=0))
    basis = basis.flip(1)  # the largest first
    curvature = torch.einsum("dk,wde,ek->wk", basis, hessian, basis)
    slopes, noise = zip(*(_gradients(landscape, x, share, basis) for share in shares), strict=True)
    displacement = (landscape.start - x) @ basis
    eigenvalues = curvature.clamp(min=workload.decay / 10)
    gap = 0.5 * float(eigenvalues.mean(dim=0) @ displacement.square())
    displacement *= math.sqrt((task.start - task.floor) / gap)
    columns = [_together(v) for v in (eigenvalues, -torch.stack(slopes) / eigenvalues, torch.stack(noise))]
    copies = WORKERS // len(shares)
    eigen, centres, variances = (np.repeat(part.numpy(), copies, axis=0) for part in columns)
    kept = directions(d)
    last = eigenvalues.mean(dim=0)[kept:]
    energy = float(last @ displacement[kept:].square()) / float(eigen.mean(axis=0)[-1])
    eigen[:, -1], centres[:, -1] = eigen[:, -1].mean(), 0.0
    return Workers(eigen, centres, variances, np.append(displacement[:kept].numpy(), math.sqrt(energy)))


def directions(d: int) -> int:
    """Return how many are kept apart.

    Parameters
    ----------
    d : int
        Parameters, two at least.
    """
    return min(DIRECTIONS, d - 1)


def _together(rows: torch.Tensor) -> torch.Tensor:
    """Return the first columns, and the mean of the others in their place."""
    kept = directions(rows.shape[1])
    return torch.cat([rows[:, :kept], rows[:, kept:].mean(dim=1, keepdim=True)], dim=1)


def _gradients(
    landscape: Landscape, x: torch.Tensor, share: Share, basis: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (mean gradient of a share, variance of a mini-batch's) in the eigenbasis, each of shape (d,)."""
    chosen, weight = share
    parts, y = [], x.clone().requires_grad_()
    for part in chosen.split(CHUNK):
        losses = torch.stack([landscape.value(y, sample[None], weight) for sample in part])
        parts.append(_batched(losses, y, torch.eye(len(part), dtype=losses.dtype)))
    rows = torch.cat(parts) @ basis
    variance = rows.var(dim=0, correction=0) / (landscape.workload.batch or 1)
    # the directions that are taken together keep the whole of their noise
    kept = directions(len(variance))
    variance[kept:] = variance[kept:].sum()
    return rows.mean(dim=0), variance


# -- seconds ---------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def round_s(overlap: str, tau: int, ratio: int, in_flight: int | None) -> float:
    """Return the mean seconds of a round.

    Parameters
    ----------
    overlap : str
        The merge rule.
    tau : int
        Local steps.
    ratio : int
        D/Y.
    in_flight : int or None
        Steps between send and merge; None for all.
    """
    flight = 0 if overlap == "none" else in_flight
    return tau * seconds_per_step_in_flight(runtime(ratio), tau=tau, in_flight=flight)


def predicted_times(workers: Workers, task: Task, method: str, trial: Trial, ratio: int) -> list[float]:
    """Return the seconds until the expected loss reaches each target; infinite if it does not within the budget.

    Parameters
    ----------
    workers : Workers
        The task's quadratics.
    task : Task
        Whose targets they are.
    method : str
        Of ``PREDICTED``.
    trial : Trial
        Its numbers.
    ratio : int
        D/Y.
    """
    rule, flight = METHODS[method], steps_in_flight(method, trial.tau, ratio)
    length_s = round_s(rule.overlap, trial.tau, ratio, flight)
    rounds = math.ceil(budget_s(ratio) / length_s)
    outer = OuterStep(trial.lr, trial.momentum) if rule.outer else OuterStep()
    merge = "blocking" if rule.overlap == "none" else rule.overlap
    with np.errstate(over="ignore", invalid="ignore"):
        moments = second_moments(
            workers, merge, eta=trial.rate, tau=trial.tau, rounds=rounds, delay=flight or 0, outer=outer
        )
        losses = task.floor + expected_loss(workers, moments)
    finite = int(np.argmin(np.isfinite(losses))) if not np.isfinite(losses).all() else len(losses)
    seconds = (length_s * np.arange(finite)).tolist()
    return [arrival(seconds, losses[:finite].tolist(), target) for target in task.targets]


def predict(task: Task, ratio: int, points: int) -> Record:
    """Return every method's least predicted seconds to every target, and the tau of each.

    Parameters
    ----------
    task : Task
        The task.
    ratio : int
        D/Y.
    points : int
        Of the search's stages, which is that of the runs.
    """
    workers, predictions = quadratic_of(task), {}
    for method in PREDICTED:

        def times_of(trials: list[Trial], method: str = method) -> list[list[float]]:
            return [predicted_times(workers, task, method, trial, ratio) for trial in trials]

        tried = search(task, method, points, times_of)
        best = [tried.best(target) for target in range(len(task.targets))]
        times = [tried.times[i][target] for target, i in enumerate(best)]
        predictions[method] = {
            "times": [t if math.isfinite(t) else None for t in times],
            "trials": [tried.trials[i].numbers() for i in best],
        }
    return predictions
