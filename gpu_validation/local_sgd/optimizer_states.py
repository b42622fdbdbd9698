"""The state of an optimizer by the names of the model's parameters, as ``optimizer_state="average"`` sees it.

Tensors of at least one dimension are moments: a rank that has none yet counts as zero, and makes one with its first
gradient.  Floating-point scalars become the mean over the ranks that have them, and counters (``step``, integers) the
largest.  Constants and whole tensors of integers must be equal on all ranks.  All else has no mean.  The state of
parameters of other models is not touched.
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
    """What an entry of the state is.

    Parameters
    ----------
    kind : str
        What becomes of it.
    words : str
        Its type, shape and dtype; for what must be equal its value too.
    shape : tuple of int
        Of a tensor.
    dtype : str
        Of a tensor, or "int" or "float".
    """

    kind: str
    words: str
    shape: tuple[int, ...] = ()
    dtype: str = ""


def entry_of(key: str, value: Any) -> Entry:
    """Return what an entry is.

    Parameters
    ----------
    key : str
        Its name.
    value : object
        What the optimizer keeps there.
    """
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
    """Return the optimizer's state by place, sorted, with its values; what is None counts as missing.

    Parameters
    ----------
    model : Module
        Names the parameters.
    optimizer : Optimizer
        Of some or all of them.
    """
    state: dict[Place, tuple[Entry, Any]] = {OPTIMIZER: (Entry(CONSTANT, type(optimizer).__name__), None)}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                state[name, str(key)] = entry_of(str(key), value), value
    return dict(sorted(state.items()))


def union(ranks: Sequence[Mapping[Place, Entry]]) -> dict[Place, Entry]:
    """Return the entries that any rank has.

    Parameters
    ----------
    ranks : sequence of mapping
        The entries of every rank, in rank order.

    Raises
    ------
    ValueError
        For an entry that differs between ranks, or that has no mean.
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
    """Return a counter or a scalar as an integer of 64 bits.

    Parameters
    ----------
    entry : Entry
        What it is.
    value : object
        The value.
    """
    number = value.item() if isinstance(value, torch.Tensor) else value
    return struct.unpack("<q", struct.pack("<d", number))[0] if _is_float(entry) else int(number)


def settled(entry: Entry, words: Sequence[int]) -> int | float:
    """Return the largest counter, or the mean of scalars, of which ``word`` gave the words.

    Parameters
    ----------
    entry : Entry
        What they are.
    words : sequence of int
        One for every rank that has it.
    """
    numbers = [struct.unpack("<d", struct.pack("<q", w))[0] for w in words] if _is_float(entry) else list(words)
    if entry.kind == COUNTER:
        return max(numbers)
    return numbers[0] if len(set(numbers)) == 1 else sum(number / len(numbers) for number in numbers)


def _is_float(entry: Entry) -> bool:
    return entry.dtype.startswith(("float", "bfloat"))


def moment_of(entry: Entry, value: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """Return a moment as a vector to be averaged; zeros where a rank has none.

    Parameters
    ----------
    entry : Entry
        What it is.
    value : tensor or None
        The moment.
    device : device
        Where zeros are made.
    """
    if value is None:
        value = torch.zeros(entry.shape, dtype=getattr(torch, entry.dtype), device=device)
    value = value.detach()
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return (value.float() if value.element_size() == 1 else value).reshape(-1)
