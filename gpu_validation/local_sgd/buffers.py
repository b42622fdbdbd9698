"""Buffers that averagings make equal, and exact means of their entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import torch

from ..distributed.tensors import as_bytes, distinct
from .sharded import local
from .structure import digest

Buffers = dict[str, torch.Tensor]


def averaged_buffers(model: torch.nn.Module) -> Buffers:
    """Return the buffers that averagings make equal, by name, as views that can be written entry by entry.

    Buffers with ``persistent=False``, boolean buffers and buffers in the memory of a parameter are left out.  The view
    of an expanded buffer has every entry once.  The view of a complex buffer has real and imaginary parts.
    """
    taken = [_extent(p) for p in map(local, model.parameters()) if p.numel()]
    buffers: Buffers = {}
    ids: set[int] = set()
    for path, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is None or name in module._non_persistent_buffers_set or id(buffer) in ids:
                continue
            ids.add(id(buffer))
            if buffer.dtype == torch.bool or (buffer.numel() and _meets(_extent(buffer), taken)):
                continue
            view = distinct(buffer)
            buffers[f"{path}.{name}" if path else name] = torch.view_as_real(view) if view.is_complex() else view
    return dict(sorted(buffers.items()))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of a tensor's memory and the first byte behind it."""
    last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _meets(extent: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(extent[0] < stop and start < extent[1] for start, stop in others)


def contents(buffers: Sequence[torch.Tensor]) -> int:
    """Return a digest of the bytes of some buffers, which have the same order on all ranks."""
    if not buffers:
        return 0
    if all(buffer.device.type == "cpu" for buffer in buffers):
        return digest(*(as_bytes(buffer).numpy().data for buffer in buffers))
    return digest(torch.cat([as_bytes(buffer).to(buffers[0].device) for buffer in buffers]).cpu().numpy().data)


def is_wide(buffer: torch.Tensor) -> bool:
    """Return whether a float64 mean of the entries may lose digits or overflow: True for integers and float64."""
    return not buffer.is_floating_point() or buffer.dtype == torch.float64


def not_finite(buffers: Sequence[torch.Tensor]) -> bool:
    """Return whether any entry of a floating-point buffer is not finite."""
    return any(b.is_floating_point() and not torch.isfinite(_readable(b)).all() for b in buffers)


def exact_mean(parts: Mapping[int, torch.Tensor], weights: Mapping[int, float]) -> torch.Tensor:
    """Return the weighted mean of one buffer over ranks, in the same dtype.

    Entries that are bitwise equal on all ranks are not changed.  Floating-point entries are summed in float64 in rank
    order, integers exactly.  The result is rounded once, to nearest even.  The weights are >= 0 with sum 1.
    """
    ranks = sorted(parts)
    plain = len({weights[r] for r in ranks}) == 1
    first = parts[ranks[0]]
    if not first.is_floating_point():
        arrays = [_integers(parts[r]) for r in ranks]
        mean = integer_mean(arrays) if plain else _weighted_integers(arrays, [weights[r] for r in ranks])
        exact = torch.from_numpy(mean.view(np.int64)).view(first.shape)
        return exact.view(first.dtype) if first.dtype == torch.uint64 else exact.to(first.dtype)
    values = np.stack([_readable(parts[r]).double().cpu().numpy().reshape(-1) for r in ranks])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _sum(values) / len(ranks) if plain else _sum(values * np.array([[weights[r]] for r in ranks]))
        overflown = ~np.isfinite(mean) & np.isfinite(values).all(0)
        mean[overflown] = _sum(values[:, overflown] / len(ranks))
    same = _equal_bits([parts[r] for r in ranks])
    result = torch.from_numpy(mean).view(first.shape).to(first.dtype)
    as_bytes(result).view(-1, first.element_size())[same] = as_bytes(first).cpu().view(-1, first.element_size())[same]
    return result


def offenders(parts: Mapping[int, torch.Tensor]) -> list[int]:
    """Return the ranks with a non-finite entry that is not equal on all ranks."""
    ranks = sorted(parts)
    if not parts[ranks[0]].is_floating_point():
        return []
    differ = ~_equal_bits([parts[r] for r in ranks])
    return [r for r in ranks if bool((~torch.isfinite(_readable(parts[r]).cpu()).reshape(-1) & differ).any())]


def integer_mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of integer arrays of one shape, all int64 or all uint64.

    It is rounded once, to nearest even; no intermediate result is rounded.
    """
    m = arrays[0].dtype.type(len(arrays))
    quotient, remainder = np.zeros_like(arrays[0]), np.zeros(arrays[0].shape, np.int64)
    for array in arrays:
        quotient += array // m  # the sum may wrap around; the mean fits
        remainder += (array % m).astype(np.int64)
    quotient += (remainder // len(arrays)).astype(quotient.dtype)
    twice = 2 * (remainder % len(arrays))
    up = (twice > len(arrays)) | ((twice == len(arrays)) & (quotient % 2 == 1))
    return quotient + up.astype(quotient.dtype)


def _weighted_integers(arrays: Sequence[np.ndarray], weights: Sequence[float]) -> np.ndarray:
    exact = [Fraction(weight) for weight in weights]
    columns = zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)
    total = sum(exact)
    means = [round(sum(w * x for w, x in zip(exact, column, strict=True)) / total) for column in columns]
    return np.array(means, arrays[0].dtype).reshape(arrays[0].shape)


def _integers(buffer: torch.Tensor) -> np.ndarray:
    """Return the entries as a vector of int64, or of uint64 for that dtype."""
    if buffer.dtype == torch.uint64:
        return buffer.detach().cpu().contiguous().view(torch.int64).reshape(-1).numpy().view(np.uint64)
    return buffer.detach().cpu().to(torch.int64).reshape(-1).numpy()


def _readable(buffer: torch.Tensor) -> torch.Tensor:
    """Return floating-point entries in a dtype that supports arithmetic."""
    return buffer.float() if buffer.element_size() == 1 else buffer


def _sum(values: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis, in order."""
    total = values[0].copy()
    for row in values[1:]:
        total += row
    return total


def _equal_bits(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a mask of the entries that are bitwise equal in all parts."""
    first, *rest = (as_bytes(part).cpu().view(-1, part.element_size()) for part in parts)
    same = torch.ones(len(first), dtype=torch.bool)
    for part in rest:
        same &= (part == first).all(1)
    return same
