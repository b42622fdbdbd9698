"""Several tensors as one vector, and back; and the one way in which vectors of several ranks are averaged."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .folding import fold_arrays


def flat(
    tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None, out: torch.Tensor | None = None
) -> torch.Tensor:
    """A vector of all entries, shape (d,), without gradient history, on the first tensor's device.

    dtype : of the vector; by default the one to which the tensors promote.  out : where to put it, of that dtype; by
    default a new one.
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


def precision(dtype: torch.dtype) -> torch.dtype:
    """In what a mean of vectors of this dtype is kept: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def fold(parts: Sequence[torch.Tensor], out: torch.Tensor | None = None) -> torch.Tensor:
    """The mean of equally long vectors: their sum, one after the other in float64, divided by their number.

    The same parts in the same order give the same bits, for any piece of the vectors and on any device.
    out : where to put it; by default a new vector in the parts' ``precision``.
    """
    first, *rest = parts
    if out is None:
        out = first.new_empty(first.numel(), dtype=precision(first.dtype))
    if rest and first.device.type == "cpu" and first.dtype == out.dtype:
        fold_arrays([part.numpy() for part in parts], out.numpy())
    else:
        _fold_plainly(parts, out)
    return out


def _fold_plainly(parts: Sequence[torch.Tensor], out: torch.Tensor) -> None:
    """For any dtype and device; the reference of the compiled way."""
    first, *rest = parts
    total = first.to(torch.float64, copy=True)
    for part in rest:
        total += part
    out.copy_(total.div_(len(parts)))


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
