"""Several tensors as one vector, and back."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A new vector of all entries, shape (d,), without gradient history."""
    return torch.cat([t.detach().reshape(-1) for t in tensors]).clone()


def load(vector: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copy a vector, shape (d,), into the tensors it was made of, in place."""
    start = 0
    with torch.no_grad():
        for t in tensors:
            t.copy_(vector[start : start + t.numel()].view_as(t))
            start += t.numel()


def floating_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    """All parameters, then all floating-point buffers (BatchNorm statistics): what averaging makes equal."""
    return [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]


def floating_state(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The floating-point tensors of an optimizer's state, in the order of its parameters and of their names."""
    return [
        value
        for group in optimizer.param_groups
        for parameter in group["params"]
        for _, value in sorted(optimizer.state.get(parameter, {}).items())
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
