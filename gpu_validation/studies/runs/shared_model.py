"""Synchronous steps of one model that all workers share: the loop for rules that merge gradients, not models.

Nothing is local here, so that nothing is averaged: ``training_rounds`` synchronises models that have moved apart, and
a rule of ``operators.aggregate`` makes one vector of the gradients that the workers have at the same point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import torch

from operators import Key

from ...processes.tensors import flat, load
from ...workloads import Workload

Merge = Callable[[list[torch.Tensor], Sequence[Key]], torch.Tensor | None]


def shared_steps(
    workload: Workload, model: torch.nn.Module, merge: Merge, *, workers: int, seed: int, stream: int | None = None
) -> Iterator[int]:
    """Move the model by what is made of all workers' gradients, for as long as the caller and the rule go on.

    Parameters
    ----------
    workload : Workload
        Whose loss is lowered.
    model : torch.nn.Module
        Of the workload; changed in place.
    merge : callable
        Makes of the workers' gradients, shape (d,) each, and of their keys the vector that is taken off the model;
        None ends the run before the step.
    workers : int
        How many gradients a step has.
    seed : int
        Of the workers' keys.
    stream : int or None, optional
        Fold of the key of a worker's mini-batches; None for the key itself.

    Yields
    ------
    int
        The number of steps made so far.
    """
    parameters = list(model.parameters())
    for step in count():
        keys = [Key(seed, step=step, rank=rank) for rank in range(workers)]
        losses = (workload.loss(model, key=key if stream is None else key.fold_in(stream)) for key in keys)
        change = merge([flat(torch.autograd.grad(loss, parameters)) for loss in losses], keys)
        if change is None:
            return
        load(flat(parameters) - change, parameters)
        yield step + 1
