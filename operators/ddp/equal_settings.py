"""Ranks that encode and decode differently would train on nonsense: see at the start that they do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist

from ..fingerprint import Fingerprint, require_accepted, require_equal_ranks
from ..message import Message
from .collectives import Gather


class Connects(Protocol):
    """A hook's state that is made on every rank alone, and then exchanges its settings."""

    def connect(self) -> None:
        """Compare the settings with those of the other ranks, and make what exchanges need."""


S = TypeVar("S", bound=Connects)
Ranks = dist.ProcessGroup | Sequence[dist.ProcessGroup] | None  # one group, or the groups of all dimensions of a mesh


def connected(make: Callable[[], S], *, group: dist.ProcessGroup | None, device: torch.device) -> S:
    """Return a state that is connected; what one rank refuses is raised on every rank.

    Parameters
    ----------
    make : callable
        Makes this rank's state without a collective.
    group : ProcessGroup or None
        The ranks.
    device : device
        Where the back end needs its tensors.

    Raises
    ------
    ValueError
        If another rank's arguments are refused, or differ from those of rank 0.
    """
    with refusals_sent(group, device):
        state = make()
    state.connect()
    return state


@contextmanager
def refusals_sent(group: Ranks, device: torch.device) -> Iterator[None]:
    """Send what is raised inside to the other ranks, where ``require_equal_settings`` raises it.

    Parameters
    ----------
    group : ProcessGroup or sequence of ProcessGroup or None
        The ranks; of a mesh, the groups of its dimensions.
    device : device
        Where the back end needs its tensors.
    """
    try:
        yield
    except Exception as error:
        gathered({"refused": str(error)}, group, device)
        raise


def require_equal_settings(own: Fingerprint, *, group: Ranks, device: torch.device) -> None:
    """Raise on every rank if two ranks of the group have different settings.

    Parameters
    ----------
    own : dict of str to int
        The fingerprint of this rank's settings; all ranks have the same names.
    group : ProcessGroup or sequence of ProcessGroup or None
        The ranks; of a mesh, the groups of its dimensions.
    device : device
        Where the back end needs its tensors.

    Raises
    ------
    ValueError
        That names the first rank whose arguments are refused, with the reason, or the first rank that differs from
        rank 0, with the settings.
    """
    replies = gathered({"settings": own}, group, device)
    require_accepted([reply.get("refused") for reply in replies])
    require_equal_ranks([reply["settings"] for reply in replies])


def gathered(own: Mapping[str, Any], group: Ranks, device: torch.device) -> list[dict[str, Any]]:
    """Return the values of every rank, in rank order.

    Parameters
    ----------
    own : mapping of str to object
        This rank's values, for JSON.
    group : ProcessGroup or sequence of ProcessGroup or None
        The ranks; of a mesh, the groups of its dimensions, along which what has been gathered is gathered again.
    device : device
        Where the back end needs its tensors.
    """
    replies = [dict(own)]
    for of_dimension in reversed(group if isinstance(group, Sequence) else [group]):
        text = torch.frombuffer(bytearray(json.dumps(replies).encode()), dtype=torch.uint8)
        gather = Gather(Message(text, 8 * text.numel()), group=of_dimension, device=device)
        gather.send()
        replies = [reply for message in gather.wait() for reply in json.loads(bytes(message.payload.tolist()))]
    return replies


def kinds(parameters: Mapping[str, torch.Tensor]) -> list[tuple[str, tuple[int, ...], torch.dtype]]:
    """Return name, shape and dtype of every parameter, in the model's order.

    Parameters
    ----------
    parameters : mapping of str to Parameter
        Of the model.
    """
    return [(name, tuple(p.shape), p.dtype) for name, p in parameters.items()]


def device_of(group: Any, parameters: dict[str, torch.nn.Parameter]) -> torch.device:
    """Return where the back end of a group needs its tensors: NCCL on this rank's GPU, others on the CPU.

    Parameters
    ----------
    group : ProcessGroup
        The ranks.
    parameters : dict of str to Parameter
        Of the model.
    """
    nccl = dist.get_backend(group) == "nccl"
    return next(iter(parameters.values())).device if nccl else torch.device("cpu")
