"""Detection of parameters in the same memory, so that every entry is sent and averaged once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

P = TypeVar("P", bound=torch.Tensor)


@dataclass(frozen=True)
class _Place:
    """Bytes of a storage between a tensor's first and last entry."""

    name: str
    tensor: torch.Tensor
    storage: int
    start: int
    stop: int

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor) -> _Place:
        """Return the place of a tensor with at least one entry."""
        last = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
        start = int(tensor.storage_offset()) * tensor.element_size()
        stop = start + (int(last) + 1) * tensor.element_size()
        return cls(name, tensor, tensor.untyped_storage().data_ptr(), start, stop)


def without_aliases(parameters: Mapping[str, P]) -> dict[str, P]:
    """Return the parameters without those whose entries all lie in another returned one.

    Raises
    ------
    ValueError
        If two parameters share only some of their entries, or if entries of one parameter share memory.

    Notes
    -----
    ``torch.nn.Module.named_parameters`` already names a parameter once that several modules share.  This function
    handles different parameters with common memory, such as a weight and its transpose, or a fused matrix and its
    blocks.
    """
    aliases = {
        name
        for places in _overlapping(parameters)
        for name in ([] if len(places) == 1 and places[0].tensor.is_contiguous() else _covered(places))
    }
    return {name: p for name, p in parameters.items() if name not in aliases}


def _overlapping(parameters: Mapping[str, torch.Tensor]) -> Iterator[list[_Place]]:
    """Yield groups of places whose byte ranges overlap; each place is in one group."""
    wrapped = is_traceable_wrapper_subclass  # such as DTensor, which has no own memory
    places = [_Place.of(name, p) for name, p in parameters.items() if p.numel() and not wrapped(p)]
    group: list[_Place] = []
    for place in sorted(places, key=lambda place: (place.storage, place.start)):
        if group and (place.storage != group[0].storage or place.start >= max(other.stop for other in group)):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _covered(places: list[_Place]) -> list[str]:
    """Return the names of places whose entries lie in larger ones."""
    if len({place.tensor.dtype for place in places}) > 1:
        first, second = places[0].name, next(p.name for p in places if p.tensor.dtype != places[0].tensor.dtype)
        raise ValueError(f"{first} and {second} must not share memory, for their dtypes differ: copy one of them")
    begin = min(place.start for place in places) // places[0].tensor.element_size()
    end = max(place.stop for place in places) // places[0].tensor.element_size()
    taken = places[0].tensor.new_zeros(end - begin, dtype=torch.bool)
    covered: list[str] = []
    kept: list[str] = []
    for place in sorted(places, key=lambda place: -place.tensor.numel()):  # stable: of equal ones the first is kept
        entries = _entries(place, torch.zeros_like(taken), begin)
        shared = int((entries & taken).sum())
        if shared and shared < place.tensor.numel():
            others = ", ".join(kept)
            raise ValueError(
                f"a parameter must share all of its entries with a larger one, or none; {place.name} shares {shared} "
                f"of {place.tensor.numel()} with {others}: copy it, or use one parameter and slices of it in forward"
            )
        taken |= entries
        (covered if shared else kept).append(place.name)
    return covered


def _entries(place: _Place, mask: torch.Tensor, begin: int) -> torch.Tensor:
    """Set the mask to True at the entries of a tensor and return it."""
    tensor = place.tensor
    repeats = [size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    if not any(repeats):
        mask.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - begin).fill_(True)
    if any(repeats) or int(mask.sum()) < tensor.numel():
        raise ValueError(
            f"entries of a parameter must not share memory; {place.name} of shape {tuple(tensor.shape)} has "
            f"strides {tensor.stride()}: make it contiguous, and expand it in forward"
        )
    return mask
