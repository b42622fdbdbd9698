"""Tensors as one vector and back, copies between tensors of any layout, and whether entries are finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch


def flat(tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a vector of all entries, shape (d,), without gradient history, on the first tensor's device.

    ``dtype`` None takes the promoted dtype.
    """
    device = tensors[0].device
    return torch.cat([t.detach().reshape(-1).to(device=device, dtype=dtype or t.dtype) for t in tensors])


def load(vector: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """Copy a vector, shape (d,), into the tensors in place; integers are rounded to nearest even."""
    start = 0
    with torch.no_grad():
        for t in tensors:
            part = vector[start : start + t.numel()].view_as(t)
            t.copy_(part if t.is_floating_point() else part.round())
            start += t.numel()


def floating_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return all parameters and floating-point buffers (BatchNorm statistics), which averaging makes equal."""
    return [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]


def distinct(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with every entry of an expanded tensor once."""
    once = [slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride()]
    return tensor.detach()[tuple(once)]


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Return whether entries of ``distinct(tensor)`` may share memory, as those of ``unfold`` do."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if stride and size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def assign(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copy values of the same shape into a tensor in place, also if it is expanded or an inference tensor."""
    once = tuple(slice(0, size) for size in distinct(tensor).shape)
    with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
        distinct(tensor).copy_(values[once])


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's entries as one uint8 vector in row-major order; contiguous memory is shared."""
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8)


def is_finite(vector: torch.Tensor) -> bool:
    """Return whether all entries of a vector are finite; one sum shows it unless the sum itself overflows."""
    return math.isfinite(float(vector.sum())) or bool(torch.isfinite(vector).all())


def first_not_finite(vector: torch.Tensor) -> int:
    """Return the index of the first non-finite entry; -1 if there is none."""
    return -1 if is_finite(vector) else int(torch.isfinite(vector).int().argmin())


def all_finite(state: Any) -> bool:
    """Return whether all tensors and numbers in nested dictionaries and lists are finite."""
    if isinstance(state, dict):
        return all(all_finite(value) for value in state.values())
    if isinstance(state, list | tuple):
        return all(all_finite(value) for value in state)
    if isinstance(state, torch.Tensor):
        return not state.is_floating_point() or bool(torch.isfinite(state).all())
    return not isinstance(state, float) or math.isfinite(state)


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done its work; return at once on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
