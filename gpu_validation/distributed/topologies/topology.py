"""What every topology offers, and the one way in which messages of unknown length pass between two ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.distributed as dist

from operators import Message

HEADER_BYTES = 8  # one length in bits as int64


class Topology(ABC):
    """An all-gather of messages of unequal length; subclasses are frozen, final dataclasses."""

    name: ClassVar[str]

    @abstractmethod
    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Return (the messages of all ranks in rank order, payload bytes that this rank handed to the transport).

        Every rank of the default process group must call it; tensors on the CPU.

        Parameters
        ----------
        message : Message
            This rank's message.
        """

    @abstractmethod
    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return what a rank hands to the transport, from the lengths of the messages of all ranks alone.

        Parameters
        ----------
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        rank : int
            Number of the rank.
        """

    @abstractmethod
    def messages(self, size: int) -> int:
        """Return the most messages, of all ranks together, that one exchange hands to the transport.

        Parameters
        ----------
        size : int
            Number of ranks.
        """

    def total_payload_bytes(self, bits: Sequence[int]) -> int:
        """Return what all ranks together hand to the transport.

        Parameters
        ----------
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        """
        return sum(self.payload_bytes(bits, rank) for rank in range(len(bits)))


def framed_bytes(bits: int) -> int:
    """Return bytes of a message and its header."""
    return HEADER_BYTES + (bits + 7) // 8


def send(message: Message, to: int) -> int:
    """Send header and body to a rank; returns their bytes."""
    dist.send(torch.tensor([message.bits], dtype=torch.int64), to)
    if message.bits:
        dist.send(message.payload, to)
    return framed_bytes(message.bits)


def receive(source: int) -> Message:
    """Return the message that a rank sends."""
    header = torch.empty(1, dtype=torch.int64)
    dist.recv(header, source)
    bits = int(header)
    body = torch.empty((bits + 7) // 8, dtype=torch.uint8)
    if bits:
        dist.recv(body, source)
    return Message(body, bits)
