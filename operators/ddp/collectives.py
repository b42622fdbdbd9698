"""Messages of any length between ranks: gathered by all, or each to its owner, and the bytes counted."""

from __future__ import annotations

import time
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


# Numbers and a message from every rank to every other in one collective: all know the lengths beforehand.

NUMBER_BYTES = 8  # int64


class Frames:
    """One frame from every rank to every other: numbers, then a body.

    Parameters
    ----------
    rows : sequence of sequence of int
        The numbers for every rank, in rank order.
    messages : sequence of Message
        The bodies for every rank; empty to send zeros in their place.
    sent_bits : sequence of int, bits
        Lengths of the bodies for every rank.
    received_bits : sequence of int, bits
        Lengths of those that come from every rank.
    group : ProcessGroup or None
        Process group.
    device : device
        Where the back end needs its tensors.

    Notes
    -----
    A body of another length is cut or filled with zeros: its numbers must say so.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[int]],
        messages: Sequence[Message],
        *,
        sent_bits: Sequence[int],
        received_bits: Sequence[int],
        group: dist.ProcessGroup | None,
        device: torch.device,
    ) -> None:
        rank = dist.get_rank(group)
        others = [r for r in range(len(rows)) if r != rank]
        self._front, self.body_bytes = NUMBER_BYTES * len(rows[0]), 0
        counts, self._sizes = [0] * len(rows), [0] * len(rows)
        for r in others:
            counts[r] = self._front + _bytes(sent_bits[r])
            self._sizes[r] = self._front + _bytes(received_bits[r])
            self.body_bytes += _bytes(sent_bits[r])
        sent = torch.zeros(sum(counts), dtype=torch.uint8, device=device)
        numbers = torch.tensor([list(rows[r]) for r in others], dtype=torch.int64).view(torch.uint8)
        start = 0
        for i, r in enumerate(others):
            sent[start : start + self._front] = numbers[i]
            if messages:
                body = messages[r].payload[: counts[r] - self._front]
                sent[start + self._front : start + self._front + body.numel()] = body
            start += counts[r]
        self._received = torch.empty(sum(self._sizes), dtype=torch.uint8, device=device)
        self.work = dist.all_to_all_single(self._received, sent, self._sizes, counts, group=group, async_op=True)

    def numbers(self) -> list[list[int]]:
        """Wait, and return the numbers of every rank; those of this one, which sends itself none, are left empty."""
        self.work.wait()
        fronts = [part[: self._front] for part in self._received.split(self._sizes) if part.numel()]
        rows = torch.stack(fronts).view(torch.int64).tolist() if fronts else []
        return [rows.pop(0) if size else [] for size in self._sizes]

    def bodies(self) -> list[torch.Tensor]:
        """Return what has come from every rank, once the numbers are there."""
        return [part[self._front :] for part in self._received.split(self._sizes)]


def _bytes(bits: int) -> int:
    return (bits + 7) // 8


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


# Messages of unequal length from every rank to every other: first the lengths, then the bodies.
#
# Both steps are collectives that run in the background, so a caller may compute meanwhile; they are one where all
# ranks know the lengths beforehand.  A rank that has no message to give says so in the place of its length: then
# every rank learns of it, and none waits without end.

# Its functions' defaults hold the group of all ranks, if it exists when they are made (any optimizer imports it): the
# threads of gloo would live on after destroy_process_group, and now and then abort the process when it ends.


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
    def predicted_bytes(self) -> int:
        """What all ranks together hand over, from the lengths of the messages alone; known once sent."""
        return predicted_payload_bytes(self.lengths, self.size)

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


# Messages of unequal length from every rank, another one for each: first the lengths, then the bodies.
#
# Like ``Gather``, in collectives that run in the background, one where all know the lengths beforehand; a rank that has
# no messages tells all others so.


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
    def predicted_bytes(self) -> int:
        """What all ranks together hand over, from the lengths of the messages alone; known once sent."""
        return predicted_scatter_bytes(self.sent_bytes, self.size)

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

    def count(self, exchange: Gather | Scatter, *, coded: bool = True, carried_bits: int = 0) -> None:
        """Add what an exchange has sent.

        Parameters
        ----------
        exchange : Gather or Scatter
            Once sent.
        coded : bool, optional
            Whether its messages are an operator's, and count as codec bits.
        carried_bits : int, bits, optional
            What does not count of them.
        """
        self.codec_bits += exchange.lengths[exchange.rank] - carried_bits if coded else 0
        self.payload_bytes += exchange.payload_bytes
        self.predicted_bytes += exchange.predicted_bytes

    def count_refused(self, attempt: Gather | Scatter) -> None:
        """Add what an attempt has sent that was ``Undeclared``; nothing was taken from it.

        Parameters
        ----------
        attempt : Gather or Scatter
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
