"""Messages of unequal length from every rank, another one for each: first the lengths, then the bodies.

Like ``Gather``, in collectives that run in the background, one where all know the lengths beforehand; a rank that has
no messages tells all others so.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from ..exchange.choice import SHARD_HEADER_BYTES
from ..message import Message
from .frames import Frames, Undeclared
from .gather import Refusal
from .settling import settle_when_destroyed


class Scatter:
    """One message from every rank to every rank: construct it, ``send`` it, then ``wait`` for it.

    All ranks of a group must construct and send their scatters and gathers in the same order.

    Parameters
    ----------
    messages : sequence of Message, or int
        This rank's, one for each rank in rank order, or the reason (an integer >= 0) why it has none.
    note : int, optional
        A number that all ranks get, such as the sender's step.
    group : ProcessGroup or None, optional
        Process group; None for the default one.
    device : device or str, optional
        Where the back end needs its tensors ("cpu" for gloo, this rank's GPU for NCCL).
    exact : sequence of int or None, bits, optional
        Lengths of the messages for every rank, if all know them and they are the same of all senders: as many bytes
        then go in one collective.

    Notes
    -----
    ``payload_bytes`` is what this rank has handed to the transport, headers and bodies; ``received_bytes`` what came
    for it.  ``notes`` and ``lengths``, the bits of each rank's messages together, are in rank order and known once
    sent; ``sent_bytes`` are the bytes that each rank says to hand over as bodies.
    """

    def __init__(
        self,
        messages: Sequence[Message] | int,
        *,
        note: int = 0,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str = "cpu",
        exact: Sequence[int] | None = None,
    ) -> None:
        settle_when_destroyed(group)
        self._messages: Sequence[Message] = [] if isinstance(messages, int) else messages
        self._group, self._device = group, torch.device(device)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if isinstance(messages, int):
            rows = [[-1 - messages, note, 0, 0]] * self.size
        else:
            sent = sum(m.nbytes for r, m in enumerate(messages) if r != self.rank)
            total = sum(each.bits for each in messages)
            if exact is not None and [each.bits for each in messages] != list(exact):
                total = -1  # all ranks must hear of it
            rows = [[m.bits, note, total, sent] for m in messages]
        self._exact, self._row = exact, rows[self.rank]
        if exact is not None:
            self._frames = Frames(
                rows,
                self._messages,
                sent_bits=exact,
                received_bits=[exact[self.rank]] * self.size,
                group=group,
                device=self._device,
            )
        else:
            headers = torch.tensor(rows, dtype=torch.int64, device=self._device)
            self._headers = torch.empty_like(headers)
            self._work = dist.all_to_all_single(self._headers, headers, group=group, async_op=True)
        self.payload_bytes = self.received_bytes = (self.size - 1) * SHARD_HEADER_BYTES
        self.notes: tuple[int, ...] = ()
        self.lengths: tuple[int, ...] = ()
        self.sent_bytes: tuple[int, ...] = ()

    def send(self) -> None:
        """Wait for the lengths and send the bodies.

        Raises
        ------
        Refusal
            The same on every rank, for the first rank that has no messages.
        ValueError
            The same on every rank, for messages that are not as long as ``exact`` says.
        """
        if self._exact is not None:
            self._receive(self._exact)
            return
        self._work.wait()
        self._read(self._headers.tolist())
        others = [rank != self.rank for rank in range(self.size)]
        self._sizes = [(bits + 7) // 8 if other else 0 for bits, other in zip(self._bits, others, strict=True)]
        counts = [m.nbytes if other else 0 for m, other in zip(self._messages, others, strict=True)]
        payloads = [m.payload.to(self._device) for m, other in zip(self._messages, others, strict=True) if other]
        body = torch.cat(payloads) if payloads else torch.empty(0, dtype=torch.uint8, device=self._device)
        self._received = torch.empty(sum(self._sizes), dtype=torch.uint8, device=self._device)
        self._work = dist.all_to_all_single(self._received, body, self._sizes, counts, group=self._group, async_op=True)
        self.payload_bytes += sum(counts)
        self.received_bytes += sum(self._sizes)

    @property
    def refused_bytes(self) -> int:
        """What all ranks together hand over in an attempt that turns out as ``Undeclared``."""
        bodies = [(bits + 7) // 8 for bits in self._exact or ()]
        return predicted_scatter_bytes([sum(bodies) - body for body in bodies], self.size)

    def _read(self, headers: Sequence[Sequence[int]]) -> None:
        """Take in all ranks' numbers."""
        for rank, (number, *_) in enumerate(headers):
            if number < 0:
                raise Refusal(rank, -1 - number)
        self._bits, self.notes, self.lengths, self.sent_bytes = zip(*headers, strict=True)

    def _receive(self, exact: Sequence[int]) -> None:
        """Wait for frames, and judge their numbers."""
        numbers = self._frames.numbers()
        self._parts, self._work = self._frames.bodies(), self._frames.work
        self.payload_bytes += self._frames.body_bytes
        self.received_bytes += sum(part.numel() for part in self._parts)
        self._read([row or self._row for row in numbers])
        for rank, total in enumerate(self.lengths):
            if total != sum(exact):
                raise Undeclared(rank)

    def wait(self) -> list[Message]:
        """Return what has come for this rank, in rank order, on the device of its own, which is returned as it is."""
        self._work.wait()
        parts = list(self._received.split(self._sizes)) if self._exact is None else self._parts
        payload = parts[self.rank] = self._messages[self.rank].payload
        return [Message(part.to(payload.device), bits) for part, bits in zip(parts, self._bits, strict=True)]


def predicted_scatter_bytes(sent_bytes: Sequence[int], size: int) -> int:
    """Return payload bytes of one scatter, all ranks together: every rank sends a header to every other, and bodies.

    Parameters
    ----------
    sent_bytes : sequence of int, bytes
        Of every rank's bodies.
    size : int
        Number of ranks.
    """
    return size * (size - 1) * SHARD_HEADER_BYTES + sum(sent_bytes)
