"""Messages of any length between ranks: gathered by all, or each to its owner, and the bytes counted."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.nn.functional

from ..exchange.choice import GATHER_HEADER_BYTES, SHARD_HEADER_BYTES
from ..message import Message

# Let the threads of a back end settle when their process group is destroyed.
#
# DistributedDataParallel's reducer frees the last reference to its group while it holds the interpreter lock, and
# waits for the threads of gloo.  Such a thread may wait for that lock, to free a tensor or a callback of its latest
# collective: then the process never ends.  What is put here into PyTorch's table of groups releases the lock as it
# leaves the table.

SETTLE_S = 0.02  # a thread needs microseconds once it has the lock


class _Settles(tuple[Any, ...]):
    """An entry of PyTorch's table of groups that sleeps when it is removed."""

    def __del__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        sleep(SETTLE_S)


def settle_when_destroyed(group: dist.ProcessGroup | None) -> None:
    """Release the interpreter lock for a moment when this group is destroyed.

    Parameters
    ----------
    group : ProcessGroup or None
        Process group; None for the default one.
    """
    table = dist.distributed_c10d._world.pg_map
    held = dist.distributed_c10d._get_default_group() if group is None else group
    entry = table.get(held)
    if entry is not None and not isinstance(entry, _Settles):
        table[held] = _Settles(entry)


# Messages of unequal length from every rank to every other: first the numbers, then the bodies.
#
# Both steps are collectives that run in the background, so a caller may compute meanwhile; they are one where all
# ranks know the lengths beforehand.  A rank that has no message to give says so in the place of its length: then
# every rank learns of it, and none waits without end.

# Its functions' defaults hold the group of all ranks, if it exists when they are made (any optimizer imports it): the
# threads of gloo would live on after destroy_process_group, and now and then abort the process when it ends.

NUMBER_BYTES = 8  # int64
HEADER_BYTES = GATHER_HEADER_BYTES  # the message's length in bits, or -1 - reason of a refusal

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


class Undeclared(ValueError):  # noqa: N818  ranks receive it
    """A rank's messages are not as long as all knew beforehand; every rank raises it, and nothing was taken.

    Parameters
    ----------
    rank : int
        The rank.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(
            f"a message of rank {rank} is not as long as its operator declares exactly: correct the operator's bits(d)"
        )


class Transfer(ABC):
    """One message from every rank to every rank: construct it, ``send`` it, then ``wait`` for it or chain by ``then``.

    All ranks of a group must construct and send their transfers in the same order.

    Parameters
    ----------
    messages : sequence of Message
        For every rank, in rank order; empty for a refusal.
    rows : sequence of sequence of int
        The numbers before each message, the first one its length in bits or a refusal.
    exact : (sequence of int, sequence of int) or None, bits
        Lengths of the messages for every rank and of those from every rank, if all know them: as many bytes then go in
        one collective.  A body of another length is cut or filled with zeros.
    group : ProcessGroup or None
        Process group; None for the default one.
    device : device or str
        Where the back end needs its tensors ("cpu" for gloo, this rank's GPU for NCCL).

    Notes
    -----
    ``payload_bytes`` is what this rank has handed to the transport: headers and bodies, once for each receiver;
    ``received_bytes`` what came for it from the others.  ``lengths`` are the bits of each rank's messages together, in
    rank order; they are known once sent.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        rows: Sequence[Sequence[int]],
        exact: tuple[Sequence[int], Sequence[int]] | None,
        group: dist.ProcessGroup | None,
        device: torch.device | str,
    ) -> None:
        settle_when_destroyed(group)
        self._messages, self._exact, self._group, self._device = messages, exact, group, torch.device(device)
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self._own, self._front = rows[self.rank], NUMBER_BYTES * len(rows[0])
        self._bits: tuple[int, ...] = ()
        self.lengths: tuple[int, ...] = ()
        self.payload_bytes = self.received_bytes = (self.size - 1) * self._front
        self._begin(rows, *(exact or ([0] * self.size, [0] * self.size)), [] if exact is None else messages)

    def _begin(
        self, rows: Sequence[Sequence[int]], sent: Sequence[int], received: Sequence[int], messages: Sequence[Message]
    ) -> None:
        """Begin a collective: to every other rank its numbers, then a body of so many bits, zeros if there is none."""
        front = NUMBER_BYTES * len(rows[0])
        counts = [0 if r == self.rank else front + _bytes(bits) for r, bits in enumerate(sent)]
        self._sizes = [0 if r == self.rank else front + _bytes(bits) for r, bits in enumerate(received)]
        outgoing = torch.zeros(sum(counts), dtype=torch.uint8, device=self._device)
        for r, part in enumerate(outgoing.split(counts)):
            if r == self.rank:
                continue
            if front:
                part[:front] = torch.tensor(rows[r], dtype=torch.int64).view(torch.uint8)
            if messages:
                body = messages[r].payload[: part.numel() - front]
                part[front : front + body.numel()] = body
        self._received = torch.empty(sum(self._sizes), dtype=torch.uint8, device=self._device)
        self._work = dist.all_to_all_single(
            self._received, outgoing, self._sizes, counts, group=self._group, async_op=True
        )
        self._bodies = sum(counts) - (self.size - 1) * front, self._received.numel() - (self.size - 1) * front

    def send(self) -> None:
        """Wait for the lengths and send the bodies.

        Raises
        ------
        Refusal
            The same on every rank, for the first rank that has no message.
        Undeclared
            The same on every rank, for messages that are not as long as ``exact`` says.
        """
        self._work.wait()
        self._parts = list(self._received.split(self._sizes))
        fronts = [part[: self._front] for r, part in enumerate(self._parts) if r != self.rank]
        rows = torch.stack(fronts).view(torch.int64).tolist() if fronts else []
        rows.insert(self.rank, self._own)
        if self._exact is not None:
            self._count()
            self._parts = [part[self._front :] for part in self._parts]
        for rank, (bits, *_) in enumerate(rows):
            if bits < 0:
                raise Refusal(rank, -1 - bits)
        self._read(rows)
        if self._exact is None:
            self._begin([[]] * self.size, [m.bits for m in self._messages], self._bits, self._messages)
            self._count()
            self._parts = list(self._received.split(self._sizes))

    def _count(self) -> None:
        sent, received = self._bodies
        self.payload_bytes += sent
        self.received_bytes += received

    @abstractmethod
    def _read(self, rows: Sequence[Sequence[int]]) -> None:
        """Take in all ranks' numbers, the first of which is in ``_bits`` then; raise Undeclared for false lengths."""

    def wait(self) -> list[Message]:
        """Return what has come for this rank, in rank order, on the device of its own, which is returned as it is."""
        self._work.wait()
        return self._arrived()

    def then(self, callback: Callable[[list[Message]], T]) -> torch.futures.Future[T]:
        """Return the future of ``callback`` of the messages; it may run in a thread of the back end.

        Parameters
        ----------
        callback : callable
            From the messages to what the future gives.
        """

        def finish(done: torch.futures.Future[list[torch.Tensor]]) -> T:
            done.value()  # raises what went wrong on the way
            return callback(self._arrived())

        return self._work.get_future().then(finish)

    def _arrived(self) -> list[Message]:
        payload = self._parts[self.rank] = self._messages[self.rank].payload
        return [Message(part.to(payload.device), bits) for part, bits in zip(self._parts, self._bits, strict=True)]

    @property
    @abstractmethod
    def predicted_bytes(self) -> int:
        """What all ranks together hand over, from the lengths of the messages alone; known once sent."""

    @property
    @abstractmethod
    def refused_bytes(self) -> int:
        """What all ranks together hand over in an attempt that turns out as ``Undeclared``."""


def _bytes(bits: int) -> int:
    return (bits + 7) // 8


class Gather(Transfer):
    """An all-gather of one message a rank.

    Parameters
    ----------
    message : Message or int
        This rank's, or the reason (an integer >= 0) why it has none.
    group : ProcessGroup or None, optional
        Process group; None for the default one.
    device : device or str, optional
        Where the back end needs its tensors.
    exact : sequence of int or None, bits, optional
        Lengths of all ranks' messages, if all know them.

    Notes
    -----
    ``lengths`` are the bits of all ranks' messages in rank order, known once sent.  Every rank sends the same body to
    all: one collective, five times faster under gloo than pairwise sends.
    """

    def __init__(
        self,
        message: Message | int,
        *,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str = "cpu",
        exact: Sequence[int] | None = None,
    ) -> None:
        size = dist.get_world_size(group)
        messages, bits = ([message] * size, message.bits) if isinstance(message, Message) else ([], -1 - message)
        both = None if exact is None else ([exact[dist.get_rank(group)]] * size, exact)
        super().__init__(messages, [[bits]] * size, both, group, device)

    def _read(self, rows: Sequence[Sequence[int]]) -> None:
        self._bits = self.lengths = tuple(bits for (bits,) in rows)
        for rank, declared in enumerate(self._exact[1] if self._exact else ()):
            if self._bits[rank] != declared:
                raise Undeclared(rank)

    @property
    def predicted_bytes(self) -> int:
        """What all ranks together hand over, from the lengths of the messages alone; known once sent."""
        return predicted_payload_bytes(self.lengths, self.size)

    @property
    def refused_bytes(self) -> int:
        """What all ranks together hand over in an attempt that turns out as ``Undeclared``."""
        return predicted_payload_bytes(self._exact[1] if self._exact else (), self.size)


def predicted_payload_bytes(bits: Sequence[int], size: int) -> int:
    """Return payload bytes of one all-gather, all ranks together: messages and headers travel to every other rank.

    Parameters
    ----------
    bits : sequence of int, bits
        The lengths of the messages of all ranks.
    """
    return (size - 1) * sum(HEADER_BYTES + _bytes(b) for b in bits)


class Scatter(Transfer):
    """Another message for every rank.

    Parameters
    ----------
    messages : sequence of Message, or int
        This rank's, one for each rank in rank order, or the reason (an integer >= 0) why it has none.
    note : int, optional
        A number that all ranks get, such as the sender's step.
    group : ProcessGroup or None, optional
        Process group; None for the default one.
    device : device or str, optional
        Where the back end needs its tensors.
    exact : sequence of int or None, bits, optional
        Lengths of the messages for every rank, if all know them and they are the same of all senders.

    Notes
    -----
    ``notes`` and ``lengths``, the bits of each rank's messages together, are in rank order and known once sent;
    ``sent_bytes`` are the bytes that each rank says to hand over as bodies.
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
        size, rank = dist.get_world_size(group), dist.get_rank(group)
        self.notes: tuple[int, ...] = ()
        self.sent_bytes: tuple[int, ...] = ()
        bodies: Sequence[Message] = [] if isinstance(messages, int) else messages
        sent, lengths = sum(m.nbytes for r, m in enumerate(bodies) if r != rank), [m.bits for m in bodies]
        total = sum(lengths) if exact is None or lengths == list(exact) else -1  # -1: all ranks refuse
        rows = [[bits, note, total, sent] for bits in lengths]
        if isinstance(messages, int):
            rows = [[-1 - messages, note, 0, 0]] * size
        both = None if exact is None else (exact, [exact[rank]] * size)
        super().__init__(bodies, rows, both, group, device)

    def _read(self, rows: Sequence[Sequence[int]]) -> None:
        self._bits, self.notes, self.lengths, self.sent_bytes = zip(*rows, strict=True)
        for rank, total in enumerate(self.lengths):
            if self._exact is not None and total != sum(self._exact[0]):
                raise Undeclared(rank)

    @property
    def predicted_bytes(self) -> int:
        """What all ranks together hand over, from the lengths of the messages alone; known once sent."""
        return predicted_scatter_bytes(self.sent_bytes, self.size)

    @property
    def refused_bytes(self) -> int:
        """What all ranks together hand over in an attempt that turns out as ``Undeclared``."""
        bodies = [_bytes(bits) for bits in self._exact[0]] if self._exact else []
        return predicted_scatter_bytes([sum(bodies) - body for body in bodies], self.size)


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


# What a hook has sent: steps, bits and bytes.


class Counters:
    """Counts what the collectives of a hook send; hooks derive from it.

    Attributes
    ----------
    steps : int
        Backward passes with communication.
    codec_bits : int, bits
        Lengths of this rank's messages.
    payload_bytes : int, bytes
        What this rank has handed to the transport, headers and receivers counted.
    predicted_bytes : int, bytes
        What all ranks together should have handed over, from the lengths of the messages alone.
    """

    def __init__(self) -> None:
        self.steps = self.codec_bits = self.payload_bytes = self.predicted_bytes = 0

    def count(self, exchange: Transfer, *, coded: bool = True, carried_bits: int = 0) -> None:
        """Add what an exchange has sent.

        Parameters
        ----------
        exchange : Transfer
            Once sent.
        coded : bool, optional
            Whether its messages are an operator's, and count as codec bits.
        carried_bits : int, bits, optional
            What does not count of them.
        """
        self.codec_bits += exchange.lengths[exchange.rank] - carried_bits if coded else 0
        self.payload_bytes += exchange.payload_bytes
        self.predicted_bytes += exchange.predicted_bytes

    def count_refused(self, attempt: Transfer) -> None:
        """Add what an attempt has sent that was ``Undeclared``; nothing was taken from it.

        Parameters
        ----------
        attempt : Transfer
            The refused exchange.
        """
        self.payload_bytes += attempt.payload_bytes
        self.predicted_bytes += attempt.refused_bytes

    @property
    def counted(self) -> list[int]:
        """All four, to be saved and set again."""
        return [self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes]

    @counted.setter
    def counted(self, numbers: Sequence[int]) -> None:
        self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes = numbers
