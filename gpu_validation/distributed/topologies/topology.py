"""Interface of the topologies, and point-to-point messages of unknown length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.distributed as dist

from operators import Message

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


def framed_bytes(bits: int) -> int:
    """Return the bytes of a message with its header."""
    return HEADER_BYTES + (bits + 7) // 8


def send(message: Message, to: int) -> int:
    """Send header and body to a rank; return their bytes."""
    dist.send(torch.tensor([message.bits], dtype=torch.int64), to)
    if message.bits:
        dist.send(message.payload, to)
    return framed_bytes(message.bits)


def receive(source: int) -> Message:
    """Receive a message from a rank."""
    header = torch.empty(1, dtype=torch.int64)
    dist.recv(header, source)
    bits = int(header)
    body = torch.empty((bits + 7) // 8, dtype=torch.uint8)
    if bits:
        dist.recv(body, source)
    return Message(body, bits)
