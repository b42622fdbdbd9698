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
        """(the messages of all ranks in rank order, payload bytes that this rank handed to the transport).

        Every rank of the default process group must call it; tensors on the CPU.
        """

    @abstractmethod
    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """What a rank hands to the transport, from the lengths of the messages of all ranks alone."""

    @abstractmethod
    def messages(self, size: int) -> int:
        """The most messages, of all ranks together, that one exchange hands to the transport."""

    def total_payload_bytes(self, bits: Sequence[int]) -> int:
        """What all ranks together hand to the transport."""
        return sum(self.payload_bytes(bits, rank) for rank in range(len(bits)))


def framed_bytes(bits: int) -> int:
    """Bytes of a message and its header."""
    return HEADER_BYTES + (bits + 7) // 8


def send(message: Message, to: int) -> int:
    """Send header and body to a rank; returns their bytes."""
    dist.send(torch.tensor([message.bits], dtype=torch.int64), to)
    if message.bits:
        dist.send(message.payload, to)
    return framed_bytes(message.bits)


def receive(source: int) -> Message:
    """The message that a rank sends."""
    header = torch.empty(1, dtype=torch.int64)
    dist.recv(header, source)
    bits = int(header)
    body = torch.empty((bits + 7) // 8, dtype=torch.uint8)
    if bits:
        dist.recv(body, source)
    return Message(body, bits)
