"""Whether a model can be averaged, and with which others."""

from __future__ import annotations

import sys
from typing import Any

import torch


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
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError("there is nothing to average: no parameter of the model requires a gradient")
    for name, p in parameters.items():
        if not p.is_floating_point():
            raise TypeError(f"parameters must be floating-point to be averaged; got {name} of {p.dtype}")


def layout(model: torch.nn.Module) -> list[Any]:
    """Return names, shapes and dtypes; equal for models that can be averaged with each other."""
    parameters = [(name, tuple(p.shape), p.dtype, p.requires_grad) for name, p in model.named_parameters()]
    return [*parameters, *((tuple(b.shape), b.dtype) for b in model.buffers())]
