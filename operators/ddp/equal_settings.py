"""Ranks that encode and decode differently would train on nonsense: see at the start that they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from ..fingerprint import Fingerprint, require_equal_ranks
from ..message import Message
from .gather import Gather


def require_equal_settings(own: Fingerprint, *, group: dist.ProcessGroup | None, device: torch.device) -> None:
    """Raise on every rank if two ranks of the group have different settings.

    Parameters
    ----------
    own : dict of str to int
        The fingerprint of this rank's settings; all ranks have the same names.
    group : ProcessGroup or None
        The ranks.
    device : device
        Where the back end needs its tensors.

    Raises
    ------
    ValueError
        That names the first rank that differs from rank 0, and the settings.
    """
    digits = torch.tensor(list(own.values()), dtype=torch.int64).view(torch.uint8)
    gather = Gather(Message(digits, 8 * digits.numel()), group=group, device=device)
    gather.send()
    rows = [message.payload.cpu().clone().view(torch.int64).tolist() for message in gather.wait()]
    require_equal_ranks([dict(zip(own, row, strict=True)) for row in rows])


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
