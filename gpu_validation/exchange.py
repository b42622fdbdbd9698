"""Moving packed messages between ranks, and counting every byte handed to the transport."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from operators import Message

HEADER_BYTES = 8  # the message's length in bits as int64


class Exchange:
    """All-gather of messages of unequal length over the default process group.

    Every rank receives the messages of all ranks in rank order.  ``payload_bytes`` counts what this rank has
    handed to the transport: headers and bodies, once for each receiver.
    ``predicted_bytes`` is what all ranks together should have handed over, from the messages' lengths alone.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.device = torch.device(device)
        self.payload_bytes = self.predicted_bytes = 0

    def all_gather(self, message: Message) -> list[Message]:
        """The messages of all ranks, in rank order; the own one is returned as it is."""
        header = torch.tensor([message.bits], dtype=torch.int64, device=self.device)
        headers = [torch.empty_like(header) for _ in range(self.size)]
        dist.all_gather(headers, header)
        lengths = [int(h.item()) for h in headers]

        # every rank sends the same body to all: one collective, five times faster under gloo than pairwise sends
        sizes = [(bits + 7) // 8 for bits in lengths]
        body = message.payload.to(self.device)
        received = torch.empty(sum(sizes), dtype=torch.uint8, device=self.device)
        dist.all_to_all_single(received, body.repeat(self.size), sizes, [body.numel()] * self.size)
        self.payload_bytes += (self.size - 1) * (header.numel() * header.element_size() + body.numel())
        messages = [Message(part.cpu(), bits) for part, bits in zip(received.split(sizes), lengths, strict=True)]
        self.predicted_bytes += predicted_payload_bytes([message.bits for message in messages], self.size)
        return messages

    def all_gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """A few numbers of every rank, as float64, in rank order."""
        own = torch.tensor(list(numbers), dtype=torch.float64, device=self.device)
        rows = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(rows, own)
        self.payload_bytes += (self.size - 1) * own.numel() * own.element_size()
        self.predicted_bytes += self.size * (self.size - 1) * 8 * len(numbers)
        return [row.tolist() for row in rows]


def predicted_payload_bytes(bits: list[int], size: int) -> int:
    """Payload bytes of one all-gather: each message and its header travel to every other rank.

    bits : the lengths of the messages of all ranks.
    """
    return (size - 1) * sum(HEADER_BYTES + (b + 7) // 8 for b in bits)


def fence() -> None:
    """Wait for all ranks, so that a timed collective does not include the wait for stragglers."""
    dist.barrier()


def gather_arrays(array: torch.Tensor) -> list[torch.Tensor]:
    """Equal-shaped tensors of all ranks in rank order (measurement traffic, never counted as payload)."""
    parts = [torch.empty_like(array) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, array.contiguous())
    return parts
