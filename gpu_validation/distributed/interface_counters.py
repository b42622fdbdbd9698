"""Bytes that network interfaces and TCP streams have carried during a part of a run."""

from __future__ import annotations

import torch

from ..network.streams import StreamCount
from .collectives import gather_arrays
from .launch import GLOO, RankContext


def interface_counter(place: RankContext) -> int | None:
    """Return the bytes sent by the interface, where the back end's traffic crosses it."""
    count = place.port.count() if place.backend == GLOO else None
    return None if count is None else count.sent_bytes


def sent_between(before: StreamCount | None, after: StreamCount | None) -> StreamCount | None:
    """Return the difference of two counts of this rank's connections."""
    return None if before is None or after is None else after - before


def interface_bytes(place: RankContext, before: int | None, after: int | None) -> int | None:
    """Return the bytes that all ranks have sent between two counts: the sum of their counters, or the shared one."""
    local_bytes = -1 if before is None or after is None else after - before
    parts = [int(part) for part in gather_arrays(torch.tensor([local_bytes]))]
    if min(parts) < 0:
        return None
    return local_bytes if place.port.shared else sum(parts)
