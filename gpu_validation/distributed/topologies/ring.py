"""Exchange around a ring: every rank forwards the message that it received last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from operators import Message

from .topology import Topology, framed_bytes


@dataclass(frozen=True)
class Ring(Topology):
    """Ring of m - 1 steps; in step s rank r sends the message of rank r - s to r + 1 and receives that of r - s - 1."""

    name = "ring"

    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Exchange by sending the own message first, then each received one."""
        rank, size = dist.get_rank(), dist.get_world_size()
        messages = {rank: message}
        sent = 0
        for step in range(size - 1):
            passing = messages[(rank - step) % size]
            messages[(rank - step - 1) % size] = _swap(passing, to=(rank + 1) % size, source=(rank - 1) % size)
            sent += framed_bytes(passing.bits)
        return [messages[r] for r in range(size)], sent

    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return the bytes of every message except that of the next rank."""
        return sum(framed_bytes(b) for other, b in enumerate(bits) if other != (rank + 1) % len(bits))

    def messages(self, size: int) -> int:
        """Return the number of messages: header and body per rank and step."""
        return 2 * size * (size - 1)


def _swap(message: Message, *, to: int, source: int) -> Message:
    """Send one message while receiving another."""
    incoming = torch.empty(1, dtype=torch.int64)
    header = torch.tensor([message.bits], dtype=torch.int64)
    _together(dist.isend(header, to), dist.irecv(incoming, source))
    bits = int(incoming)
    body = torch.empty((bits + 7) // 8, dtype=torch.uint8)
    _together(
        dist.isend(message.payload, to) if message.bits else None,
        dist.irecv(body, source) if bits else None,
    )
    return Message(body, bits)


def _together(*works: dist.Work | None) -> None:
    for work in works:
        if work is not None:
            work.wait()
