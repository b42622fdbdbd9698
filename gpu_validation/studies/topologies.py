"""Topologies of an all-gather of messages of unequal length, with exactly predicted bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.distributed as dist

from operators import Message

from ..processes.collectives import ProcessTransport
from ..processes.vectors import averaging_messages

HEADER_BYTES = 8  # length in bits, int64


class Topology(ABC):
    """An all-gather of messages of unequal length; subclasses are frozen, final dataclasses."""

    name: ClassVar[str]

    @abstractmethod
    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Return (messages of all ranks in rank order, payload bytes that this rank has sent).

        Every rank of the default process group must call it, with tensors on the CPU.

        Parameters
        ----------
        message : Message
            Message of this rank.
        """

    @abstractmethod
    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return the bytes that a rank sends, from the lengths of all messages.

        Parameters
        ----------
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        rank : int
            Rank, 0 <= rank < m.
        """

    @abstractmethod
    def messages(self, size: int) -> int:
        """Return the largest number of messages of all ranks in one exchange.

        Parameters
        ----------
        size : int
            Number of ranks.
        """

    def total_payload_bytes(self, bits: Sequence[int]) -> int:
        """Return the bytes that all ranks send.

        Parameters
        ----------
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        """
        return sum(self.payload_bytes(bits, rank) for rank in range(len(bits)))


def _framed_bytes(bits: int) -> int:
    """Return the bytes of a message with its header."""
    return HEADER_BYTES + (bits + 7) // 8


def _send(message: Message, to: int) -> int:
    """Send header and body to a rank; return their bytes."""
    dist.send(torch.tensor([message.bits], dtype=torch.int64), to)
    if message.bits:
        dist.send(message.payload, to)
    return _framed_bytes(message.bits)


def _receive(source: int) -> Message:
    """Receive a message from a rank."""
    header = torch.empty(1, dtype=torch.int64)
    dist.recv(header, source)
    bits = int(header)
    body = torch.empty((bits + 7) // 8, dtype=torch.uint8)
    if bits:
        dist.recv(body, source)
    return Message(body, bits)


@dataclass(frozen=True)
class Direct(Topology):
    """Topology of ``ProcessTransport``: every rank sends header and body to every other rank."""

    name = "direct"

    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Exchange by one all-gather and one all-to-all."""
        transport = ProcessTransport()
        messages = transport.all_gather(message)
        return messages, transport.payload_bytes

    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return (m - 1) times the rank's framed message."""
        return (len(bits) - 1) * _framed_bytes(bits[rank])

    def messages(self, size: int) -> int:
        """Return the number of messages with gloo: headers in two halves around a ring, bodies to every rank."""
        return averaging_messages(size)


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
            sent += _framed_bytes(passing.bits)
        return [messages[r] for r in range(size)], sent

    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return the bytes of every message except that of the next rank."""
        return sum(_framed_bytes(b) for other, b in enumerate(bits) if other != (rank + 1) % len(bits))

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


@dataclass(frozen=True)
class Hub(Topology):
    """A forwarding parameter server, whose link carries m - 1 copies of all messages."""

    name = "hub"

    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Exchange by rank 0, which receives in rank order and sends a table of lengths and all bodies."""
        rank, size = dist.get_rank(), dist.get_world_size()
        if rank:
            sent = _send(message, 0)
            lengths = torch.empty(size, dtype=torch.int64)
            dist.recv(lengths, 0)
            sizes = [(int(b) + 7) // 8 for b in lengths]
            bodies = torch.empty(sum(sizes), dtype=torch.uint8)
            if bodies.numel():
                dist.recv(bodies, 0)
            return [Message(p, int(b)) for p, b in zip(bodies.split(sizes), lengths, strict=True)], sent
        messages = [message, *(_receive(other) for other in range(1, size))]
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
            return _framed_bytes(bits[rank])
        return (len(bits) - 1) * (HEADER_BYTES * len(bits) + sum((b + 7) // 8 for b in bits))

    def messages(self, size: int) -> int:
        """Return the number of messages: header and body from every other rank, table and bodies to it."""
        return 4 * (size - 1)


TOPOLOGIES: tuple[Topology, ...] = (Direct(), Ring(), Hub())
