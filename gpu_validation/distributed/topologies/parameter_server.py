"""Exchange through a hub: rank 0 collects all messages and sends them to every rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from operators import Message

from .topology import HEADER_BYTES, Topology, framed_bytes, receive, send


@dataclass(frozen=True)
class Hub(Topology):
    """A forwarding parameter server, whose link carries m - 1 copies of all messages."""

    name = "hub"

    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Exchange by rank 0, which receives in rank order and sends a table of lengths and all bodies."""
        rank, size = dist.get_rank(), dist.get_world_size()
        if rank:
            sent = send(message, 0)
            lengths = torch.empty(size, dtype=torch.int64)
            dist.recv(lengths, 0)
            sizes = [(int(b) + 7) // 8 for b in lengths]
            bodies = torch.empty(sum(sizes), dtype=torch.uint8)
            if bodies.numel():
                dist.recv(bodies, 0)
            return [Message(p, int(b)) for p, b in zip(bodies.split(sizes), lengths, strict=True)], sent
        messages = [message, *(receive(other) for other in range(1, size))]
        lengths = torch.tensor([m.bits for m in messages], dtype=torch.int64)
        bodies = torch.cat([m.payload for m in messages])
        for other in range(1, size):
            dist.send(lengths, other)
            if bodies.numel():
                dist.send(bodies, other)
        return messages, (size - 1) * (HEADER_BYTES * size + bodies.numel())

    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return the bytes of the framed message, or for rank 0 those of m - 1 copies of the table and all bodies."""
        if rank:
            return framed_bytes(bits[rank])
        return (len(bits) - 1) * (HEADER_BYTES * len(bits) + sum((b + 7) // 8 for b in bits))

    def messages(self, size: int) -> int:
        """Return the number of messages: header and body from every other rank, table and bodies to it."""
        return 4 * (size - 1)
