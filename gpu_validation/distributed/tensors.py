"""Several tensors as one vector, and back; and the one way in which vectors of several ranks are averaged."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def flat(
    tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return a vector of all entries, shape (d,), without gradient history, on the first tensor's device.

    Parameters
    ----------
    dtype : dtype or None, optional
        Of the vector; by default the one to which the tensors promote.
    out : tensor or None, optional
        Where to put it, of that dtype; by default a new one.
    """
    device = tensors[0].device
    parts = [t.detach().reshape(-1).to(device=device, dtype=dtype or t.dtype) for t in tensors]
    return torch.cat(parts, out=out)


def load(vector: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copy a vector, shape (d,), into the tensors it was made of, in place; integers get the nearest, even at ties."""
    start = 0
    with torch.no_grad():
        for t in tensors:
            part = vector[start : start + t.numel()].view_as(t)
            t.copy_(part if t.is_floating_point() else part.round())
            start += t.numel()


def floating_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return all parameters, then all floating-point buffers (BatchNorm statistics): what averaging makes equal."""
    return [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]


def floating_state(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Return the floating-point tensors of an optimizer's state, in the order of its parameters and of their names."""
    return [
        value
        for group in optimizer.param_groups
        for parameter in group["params"]
        for _, value in sorted(optimizer.state.get(parameter, {}).items())
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
