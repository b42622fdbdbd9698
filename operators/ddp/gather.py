"""Messages of unequal length from every rank to every other: first the lengths, then the bodies.

Both steps are collectives that run in the background, so a caller may compute meanwhile; they are one where all ranks
know the lengths beforehand.  A rank that has no
message to give says so in the place of its length: then every rank learns of it, and none waits without end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist

# Its functions' defaults hold the group of all ranks, if it exists when they are made (any optimizer imports it): the
# threads of gloo would live on after destroy_process_group, and now and then abort the process when it ends.
import torch.distributed.nn.functional

from ..exchange.choice import GATHER_HEADER_BYTES
from ..message import Message
from .frames import Frames, Undeclared
from .settling import settle_when_destroyed

HEADER_BYTES = GATHER_HEADER_BYTES  # the message's length in bits as int64, or -1 - reason of a refusal

T = TypeVar("T")


class Refusal(RuntimeError):  # noqa: N818  the documented name to catch
    """A rank had no message to give.

    Parameters
    ----------
    rank : int
        The rank in its group.
    reason : int
        The number that it gave.
    """

    def __init__(self, rank: int, reason: int) -> None:
        super().__init__(f"rank {rank} had no message to send; its reason has the number {reason}")
        self.rank, self.reason = rank, reason


class Gather:
    """An all-gather of one message a rank: construct it, ``send`` it, then ``wait`` for it or chain by ``then``.

    All ranks of a group must construct and send their gathers in the same order.

    Parameters
    ----------
    message : Message or int
        This rank's, or the reason (an integer >= 0) why it has none.
    group : ProcessGroup or None, optional
        Process group; None for the default one.
    device : device or str, optional
        Where the back end needs its tensors ("cpu" for gloo, this rank's GPU for NCCL).
    exact : sequence of int or None, bits, optional
        Lengths of all ranks' messages, if all know them: as many bytes then go in one collective.

    Notes
    -----
    ``payload_bytes`` is what this rank has handed to the transport: headers and bodies, once for each receiver;
    ``received_bytes`` what came for it from the others.
    ``lengths`` are the bits of all ranks' messages in rank order, known once sent.
    """

    def __init__(
        self,
        message: Message | int,
        *,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str = "cpu",
        exact: Sequence[int] | None = None,
    ) -> None:
        settle_when_destroyed(group)
        self._message, self._group, self._device = message, group, torch.device(device)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        number = message.bits if isinstance(message, Message) else -1 - message
        self._exact, self._number = exact, number
        if exact is not None:
            self._frames = Frames(
                [[number]] * self.size,
                [message] * self.size if isinstance(message, Message) else [],
                sent_bits=[exact[self.rank]] * self.size,
                received_bits=exact,
                group=group,
                device=self._device,
            )
            self._work = self._frames.work
            self.payload_bytes = self.received_bytes = (self.size - 1) * HEADER_BYTES
            self.lengths: tuple[int, ...] = ()
            return
        header = torch.tensor([number], dtype=torch.int64, device=self._device)
        self._headers = [torch.empty_like(header) for _ in range(self.size)]
        self._work = dist.all_gather(self._headers, header, group=group, async_op=True)
        self.payload_bytes = self.received_bytes = (self.size - 1) * HEADER_BYTES
        self.lengths = ()

    def send(self) -> None:
        """Wait for the lengths and send the bodies.

        Raises
        ------
        Refusal
            The same on every rank, for the first rank that has no message.
        ValueError
            The same on every rank, for a message that is not as long as ``exact`` says.
        """
        if self._exact is not None:
            self._receive(self._exact)
            return
        self._work.wait()
        self.lengths = tuple(int(header.item()) for header in self._headers)
        for rank, number in enumerate(self.lengths):
            if number < 0:
                raise Refusal(rank, -1 - number)
        assert isinstance(self._message, Message)  # else this rank has refused
        body = self._message.payload.to(self._device)
        self._sizes = [0 if rank == self.rank else (bits + 7) // 8 for rank, bits in enumerate(self.lengths)]
        self._received = torch.empty(sum(self._sizes), dtype=torch.uint8, device=self._device)

        # every rank sends the same body to all: one collective, five times faster under gloo than pairwise sends
        counts = [0 if rank == self.rank else body.numel() for rank in range(self.size)]
        outgoing = body.repeat(self.size - 1)
        self._work = dist.all_to_all_single(
            self._received, outgoing, self._sizes, counts, group=self._group, async_op=True
        )
        self.payload_bytes += outgoing.numel()
        self.received_bytes += self._received.numel()

    @property
    def refused_bytes(self) -> int:
        """What all ranks together hand over in an attempt that turns out as ``Undeclared``."""
        return predicted_payload_bytes(self._exact or (), self.size)

    def _receive(self, exact: Sequence[int]) -> None:
        """Wait for frames, and judge their numbers."""
        self.lengths = tuple(row[0] if row else self._number for row in self._frames.numbers())
        self._parts = self._frames.bodies()
        self.payload_bytes += self._frames.body_bytes
        self.received_bytes += sum(part.numel() for part in self._parts)
        for rank, (bits, declared) in enumerate(zip(self.lengths, exact, strict=True)):
            if bits < 0:
                raise Refusal(rank, -1 - bits)
            if bits != declared:
                raise Undeclared(rank)

    def wait(self) -> list[Message]:
        """Return the messages of all ranks in rank order, on the own one's device; that is returned as it is."""
        self._work.wait()
        return self._messages()

    def then(self, callback: Callable[[list[Message]], T]) -> torch.futures.Future[T]:
        """Return the future of ``callback`` of the messages; it may run in a thread of the back end.

        Parameters
        ----------
        callback : callable
            From the messages to what the future gives.
        """

        def finish(done: torch.futures.Future[list[torch.Tensor]]) -> T:
            done.value()  # raises what went wrong on the way
            return callback(self._messages())

        return self._work.get_future().then(finish)

    def _messages(self) -> list[Message]:
        assert isinstance(self._message, Message)  # checked when it was sent
        parts = list(self._received.split(self._sizes)) if self._exact is None else self._parts
        payload = parts[self.rank] = self._message.payload
        return [Message(part.to(payload.device), bits) for part, bits in zip(parts, self.lengths, strict=True)]


def predicted_payload_bytes(bits: Sequence[int], size: int) -> int:
    """Return payload bytes of one all-gather, all ranks together: messages and headers travel to every other rank.

    Parameters
    ----------
    bits : sequence of int, bits
        The lengths of the messages of all ranks.
    """
    return (size - 1) * sum(HEADER_BYTES + (b + 7) // 8 for b in bits)
