"""Whether a model can be averaged, and with which others."""

from __future__ import annotations

import sys
from typing import Any

import torch

from .shared_memory import without_aliases


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
    for name, p in model.named_parameters():
        _require_memory(name, p)
    if not any(True for _ in model.parameters()):
        raise ValueError("there is nothing to average: the model has no parameters")
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError("there is nothing to average: no parameter of the model requires a gradient")
    for name, p in parameters.items():
        if not p.is_floating_point():
            raise TypeError(f"parameters must be floating-point to be averaged; got {name} of {p.dtype}")
    if not any(p.numel() for p in parameters.values()):
        raise ValueError("there is nothing to average: all parameters that require a gradient are empty")
    without_aliases(parameters)


def _require_memory(name: str, p: torch.nn.Parameter) -> None:
    """Refuse a parameter that cannot be written to in place."""
    if p.device.type == "meta":
        raise ValueError(f"{name} has no values, for it is on the meta device: load the weights before")
    if p.layout != torch.strided:
        raise TypeError(f"a parameter must be dense to be averaged; {name} has the layout {p.layout}: make it dense")
    if p.is_inference():
        raise ValueError(
            f"{name} was made in inference mode and cannot be written to: make the model outside torch.inference_mode()"
        )


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Return the parameters that require a gradient by name, without those that only share memory with others.

    Raises
    ------
    ValueError
        For parameters that share a part of their memory, as ``shared_memory.without_aliases`` raises it.
    """
    return without_aliases({name: p for name, p in model.named_parameters() if p.requires_grad})


def layout(model: torch.nn.Module) -> list[Any]:
    """Return names, shapes and dtypes; equal for models that can be averaged with each other."""
    parameters = [(name, tuple(p.shape), p.dtype, p.requires_grad) for name, p in model.named_parameters()]
    try:
        sent = list(trained(model))
    except ValueError as refusal:  # raised on all ranks, once they know that they differ or that they are equal
        sent = [str(refusal)]
    return [*parameters, sent, *((tuple(b.shape), b.dtype) for b in model.buffers())]
