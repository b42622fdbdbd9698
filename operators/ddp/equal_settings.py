"""Ranks that encode and decode differently would train on nonsense: see at the start that they do not."""

from __future__ import annotations

import re
import zlib
from typing import Any

import torch
import torch.distributed as dist

from ..message import Message
from .gather import Gather


def require_equal_settings(settings: object, *, group: dist.ProcessGroup | None, device: torch.device) -> None:
    """Raise on every rank if two ranks of the group give other settings.

    Parameters
    ----------
    settings : object
        What must be alike, by its ``repr``.
    group : ProcessGroup or None
        The ranks.
    device : device
        Where the back end needs its tensors.

    Raises
    ------
    ValueError
        That names the first rank that differs from rank 0.
    """
    number = zlib.crc32(re.sub(r"0x[0-9a-f]+", "", repr(settings)).encode())  # addresses differ
    digits = torch.tensor(list(number.to_bytes(4, "big")), dtype=torch.uint8)
    gather = Gather(Message(digits, 32), group=group, device=device)
    gather.send()
    first, *others = gather.wait()
    for rank, message in enumerate(others, start=1):
        if not torch.equal(message.payload, first.payload):
            raise ValueError(
                f"ranks 0 and {rank} differ in the operator, the feedback, the scope, the exchange, the key or "
                "the shapes of the model: give all ranks the same ones"
            )


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
