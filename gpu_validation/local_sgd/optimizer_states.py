"""Averages of optimizer states by parameter name, for ``optimizer_state="average"``.

Tensors of at least one dimension are moments: a rank without one counts as zero, and gets the mean with the others.
Floating-point scalars become the mean over the ranks that have them.  Counters (``step``, integers) become the largest.
Constants and integer tensors must be equal on all ranks.  Other entries cannot be averaged.  States of parameters of
other models are not changed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..distributed.tensors import as_bytes
from .structure import described, digest

MOMENT, SCALAR, COUNTER, CONSTANT, NO_MEAN = "moment", "scalar", "counter", "constant", "no mean"
Place = tuple[str, str]  # name of the parameter, and of the entry
OPTIMIZER: Place = ("", "optimizer")


@dataclass(frozen=True)
class Entry:
    """Description of one entry of an optimizer state.

    Parameters
    ----------
    kind : str
        "moment", "scalar", "counter", "constant" or "no mean".
    words : str
        Type, shape and dtype; for constants also the value.
    shape : tuple of int
        Shape of a tensor.
    dtype : str
        Dtype of a tensor, or "int" or "float".
    """

    kind: str
    words: str
    shape: tuple[int, ...] = ()
    dtype: str = ""


def entry_of(key: str, value: Any) -> Entry:
    """Return the description of the state entry ``key``."""
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided and not value.is_quantized:
        about = str(value.dtype).removeprefix("torch.")
        if value.is_floating_point() and value.ndim and not (key == "step" and value.numel() == 1):
            return Entry(MOMENT, described(value), tuple(value.shape), about)
        if value.is_complex():
            return Entry(MOMENT, described(value), tuple(value.shape), about)
        if value.numel() == 1 and value.dtype != torch.bool:
            counts = key == "step" or not value.is_floating_point()
            return Entry(COUNTER if counts else SCALAR, described(value), tuple(value.shape), about)
        return Entry(CONSTANT, f"{described(value)} with digest {digest(as_bytes(value).cpu().numpy().data):x}")
    if isinstance(value, bool | str):
        return Entry(CONSTANT, repr(value))
    if isinstance(value, int):
        return Entry(COUNTER if -(2**63) <= value < 2**63 else NO_MEAN, "int", dtype="int")
    if isinstance(value, float):
        return Entry(COUNTER if key == "step" else SCALAR, "float", dtype="float")
    return Entry(NO_MEAN, f"a {type(value).__name__}")


def entries(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[Place, tuple[Entry, Any]]:
    """Return the optimizer's entries and values by place, sorted; None counts as missing."""
    state: dict[Place, tuple[Entry, Any]] = {OPTIMIZER: (Entry(CONSTANT, type(optimizer).__name__), None)}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                state[name, str(key)] = entry_of(str(key), value), value
    return dict(sorted(state.items()))


def union(ranks: Sequence[Mapping[Place, Entry]]) -> dict[Place, Entry]:
    """Return the entries that any rank has; ``ranks`` are in rank order.

    Raises
    ------
    ValueError
        For an entry that differs between ranks, or that cannot be averaged.
    """
    common: dict[Place, Entry] = {}
    owner: dict[Place, int] = {}
    for rank, state in enumerate(ranks):
        for place, entry in state.items():
            if common.setdefault(place, entry) != entry:
                raise ValueError(
                    f'optimizer_state="average" needs equal states; {_named(place)} is {common[place].words} on rank '
                    f"{owner[place]} and {entry.words} on rank {rank}: use one optimizer, or keep or reset its state"
                )
            owner.setdefault(place, rank)
            if entry.kind == NO_MEAN:
                raise ValueError(
                    f'optimizer_state="average" cannot average {_named(place)}, which is {entry.words}: use '
                    'optimizer_state="keep" or "reset"'
                )
    return dict(sorted(common.items()))


def _named(place: Place) -> str:
    return place[1] if place == OPTIMIZER else f"{place[1]} of {place[0]}"


def word(entry: Entry, value: Any) -> int:
    """Return a counter or a scalar as a 64-bit integer."""
    number = value.item() if isinstance(value, torch.Tensor) else value
    return struct.unpack("<q", struct.pack("<d", number))[0] if _is_float(entry) else int(number)


def settled(entry: Entry, words: Sequence[int]) -> int | float:
    """Return the largest counter or the mean of scalars, from the integers of ``word``."""
    numbers = [struct.unpack("<d", struct.pack("<q", w))[0] for w in words] if _is_float(entry) else list(words)
    if entry.kind == COUNTER:
        return max(numbers)
    return numbers[0] if len(set(numbers)) == 1 else sum(number / len(numbers) for number in numbers)


def _is_float(entry: Entry) -> bool:
    return entry.dtype.startswith(("float", "bfloat"))


def moment_of(entry: Entry, value: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """Return a moment as a vector for averaging; zeros where a rank has none."""
    if value is None:
        value = torch.zeros(entry.shape, dtype=getattr(torch, entry.dtype), device=device)
    value = value.detach()
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return (value.float() if value.element_size() == 1 else value).reshape(-1)
