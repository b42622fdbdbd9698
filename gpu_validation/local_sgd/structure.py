"""What of a model is averaged: the parameters that require a gradient, and the buffers; and whether two models agree.

Frozen parameters are sent once, at the start, and stay what they are on every rank.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

Trained = dict[str, torch.nn.Parameter]


def trained(model: torch.nn.Module) -> Trained:
    """Return the parameters that require a gradient, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def numeric_buffers(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return the buffers that have a mean: neither boolean nor complex ones."""
    return [b for b in model.buffers() if b.dtype != torch.bool and not b.is_complex()]


def require_averageable(model: torch.nn.Module) -> None:
    """Refuse a model that cannot be averaged.

    TypeError for parameters that are not floating-point, or of which this rank holds a piece only.

    Raises
    ------
    ValueError
        If no parameter requires a gradient, or if one has no shape yet.
    """
    sharded = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", ())
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, sharded) or getattr(tensor, "_is_flat_param", False):
            raise TypeError(
                f"{name} is sharded over the ranks (FSDP, DTensor), and an averaging needs the whole of it on every "
                "rank: sharded models are not supported yet; leave out fully_shard, or use DistributedDataParallel"
            )
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} has no shape yet: run one batch through the model before it is averaged")
    if not any(True for _ in model.parameters()):
        raise ValueError("there is nothing to average: the model has no parameters")
    parameters = trained(model)
    if not parameters:
        raise ValueError("there is nothing to average: no parameter of the model requires a gradient")
    for name, p in parameters.items():
        if not p.is_floating_point():
            raise TypeError(f"parameters must be floating-point to be averaged; got {name} of {p.dtype}")


def layout(model: torch.nn.Module) -> list[Any]:
    """Return names, shapes and dtypes; equal for models that can be averaged with each other."""
    parameters = [(name, tuple(p.shape), p.dtype, p.requires_grad) for name, p in model.named_parameters()]
    return [*parameters, *((tuple(b.shape), b.dtype) for b in model.buffers())]


def kinds(parameters: Trained) -> list[Any]:
    """Return what must be the same for one vector to serve these parameters and those that take their places."""
    return [(name, type(p), p.shape, p.dtype, p.device) for name, p in parameters.items()]
