"""Transport of packed messages and whole models between ranks, which counts every byte."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist

from operators import Message
from operators.ddp.collectives import Gather, Scatter, Undeclared, predicted_payload_bytes, predicted_scatter_bytes
from operators.ddp.failures import Spare, marks_failure, side_group, spare_group
from operators.ddp.nodes import Nodes

from .position import at
from .step_check import UnevenSteps
from .tensors import as_bytes, assign
from .transport import InThread, NodeLinks
from .vectors import Vectors

PLACE_BITS = 32  # header of a message: local steps of its sender

T = TypeVar("T")


class ProcessTransport(Vectors):
    """Transport between the ranks of a process group; this process is one rank.

    Parameters
    ----------
    device : device or str or None, optional
        Device of the messages; None takes the GPU with NCCL, else the CPU.
    group : ProcessGroup or None, optional
        Process group; None is the group of all ranks.

    Notes
    -----
    ``payload_bytes`` counts the bytes that this rank has sent, once per receiver.  ``received_bytes`` counts those sent
    to it.  ``predicted_bytes`` is the number for all ranks computed from lengths alone.  Setup is not counted
    (``all_gather_int``, ``broadcast``, and the comparison of ``ways``).
    """

    def __init__(self, device: torch.device | str | None = None, group: dist.ProcessGroup | None = None) -> None:
        super().__init__(group, torch.device(device) if device is not None else _device_of(group))
        # release the groups before the interpreter ends: running threads of a back end may abort the process
        weakref.finalize(self, self._own_group.clear)
        self._latest: InThread | None = None
        self._links: dict[int, list[ProcessTransport]] = {}

    @classmethod
    def with_own_group(cls, group: dist.ProcessGroup | None = None) -> ProcessTransport:
        """Return a transport with its own process group of the same ranks, for use beside other collectives.

        The process group is reused after the transport has been deleted on all ranks.

        Parameters
        ----------
        group : ProcessGroup or None, optional
            Process group, whose time limit the new one has; None is the group of all ranks.
        """
        transport = cls(group=group)
        own_group, spare = spare_group(transport._whole, transport, device=transport.device)
        transport._own_group[0], transport.spare = own_group, spare
        transport.device = _device_of(transport.group)
        return transport

    def rejoin(self) -> None:
        """Use the current default process group in place of one that has been destroyed; the counts continue."""
        self._own_group[0] = None
        self._take_places()
        self._links.clear()

    def start(self, work: Callable[[], T]) -> InThread[T]:
        """Run work in a thread, after the previous work has ended.

        Parameters
        ----------
        work : callable
            Function that uses this transport; nothing else may use it until the result has been taken.
        """
        self._latest = InThread(work, self._latest, self.device)
        for transport in self._with_links:
            if transport.spare is not None:
                transport.spare.thread = self._latest.thread
        return self._latest

    # -- messages ----------------------------------------------------------------------------------------
    @marks_failure
    def all_gather(self, message: Message | int, exact: Sequence[int] | None = None) -> list[Message]:
        """Return the messages of all ranks, in rank order; this rank's own is returned as it is.

        Parameters
        ----------
        message : Message or int
            The message, or the number of a refusal.
        exact : sequence of int or None, bits, optional
            Lengths of all ranks' messages, if all ranks know them.

        Raises
        ------
        Refusal
            On every rank, if a rank refuses.
        """
        at(exchange="all-gather" if isinstance(message, int) else f"all-gather of a message of {message.bits} bits")
        gather = Gather(message, group=self.group, device=self.device, exact=exact)
        try:
            gather.send()
        except Undeclared:
            self._count(gather, gather.refused_bytes)
            raise
        messages = gather.wait()
        self._count(gather, predicted_payload_bytes(gather.lengths, self.size))
        return messages

    def _count(self, exchange: Gather | Scatter, predicted_bytes: int) -> None:
        """Add the bytes of an exchange, also of a refused one."""
        self.payload_bytes += exchange.payload_bytes
        self.received_bytes += exchange.received_bytes
        self.predicted_bytes += predicted_bytes

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return the messages of all ranks by rank; each is sent with its sender's position.

        Parameters
        ----------
        messages : sequence of Message or int or None
            Message of this rank only; None to send an empty one; the number of a refusal.
        position : int
            Local steps of this rank, below 2^32.
        exact : sequence of int or None, bits, optional
            Lengths of all ranks' messages, if all ranks know them; one collective then sends them.

        Raises
        ------
        UnevenSteps
            On every rank, unless all positions are equal.
        Refusal
            On every rank, if a rank refuses.
        Undeclared
            On every rank, if a message does not have its length of ``exact``; its bytes are counted.
        """
        (message,) = messages
        framed_bits = None if exact is None else [PLACE_BITS + bits for bits in exact]
        if isinstance(message, int):
            self.all_gather(message, exact=framed_bits)  # raises, here and on all other ranks
            raise AssertionError("a refusal has been taken for a message")
        body = [] if message is None else [message.payload]
        place = torch.tensor(list(position.to_bytes(PLACE_BITS // 8, "big")), dtype=torch.uint8)
        place = place.to(body[0].device) if body else place
        bits = PLACE_BITS + (message.bits if message else 0)
        framed = self.all_gather(Message(torch.cat([place, *body]), bits), exact=framed_bits)
        places = [int.from_bytes(m.payload[: PLACE_BITS // 8].tolist(), "big") for m in framed]
        if len(set(places)) > 1:
            raise UnevenSteps(f"the ranks have made {places} local steps")
        lengths = [m.bits - PLACE_BITS for m in framed]
        return {
            r: Message(m.payload[PLACE_BITS // 8 :], n) for r, (m, n) in enumerate(zip(framed, lengths, strict=True))
        }

    @marks_failure
    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return the messages for this rank by sender, and the bits of all messages of every rank, in rank order.

        Parameters
        ----------
        messages : sequence of sequence of Message or int or None
            Messages of this rank only, one per receiver; None to send empty ones; the number of a refusal.
        position : int
            Local steps of this rank, below 2^32.
        exact : sequence of int or None, bits, optional
            Lengths of the messages for every rank, if all ranks know them; one collective then sends them.

        Raises
        ------
        UnevenSteps
            On every rank, unless all positions are equal.
        Refusal
            On every rank, if a rank refuses.
        """
        (outgoing,) = messages
        silent = [Message(torch.empty(0, dtype=torch.uint8), 0)] * self.size
        sent = silent if outgoing is None else outgoing
        shots = Scatter(sent, note=position, group=self.group, device=self.device, exact=exact)
        try:
            shots.send()
        except Undeclared:
            self._count(shots, shots.refused_bytes)
            raise
        arrived = shots.wait()
        self._count(shots, predicted_scatter_bytes(shots.sent_bytes, self.size))
        if len(set(shots.notes)) > 1:
            raise UnevenSteps(f"the ranks have made {list(shots.notes)} local steps")
        return [dict(enumerate(arrived))], list(shots.lengths)

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the rows of all ranks as float64, in rank order.

        Parameters
        ----------
        rows : sequence of sequence of float
            Row of this rank only; equally long on all ranks.
        """
        (row,) = rows
        return self._numbers(row, torch.float64)

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the rows of all ranks, in rank order.

        Parameters
        ----------
        rows : sequence of sequence of int
            Row of 64-bit integers of this rank only; equally long on all ranks.
        """
        (row,) = rows
        return self._numbers(row, torch.int64)

    def _numbers(self, row: Sequence[float], dtype: torch.dtype) -> list[list]:
        self.payload_bytes += (self.size - 1) * 8 * len(row)
        self.received_bytes += (self.size - 1) * 8 * len(row)
        self.predicted_bytes += self.size * (self.size - 1) * 8 * len(row)
        return self._gather_row(row, dtype)

    # -- setup -------------------------------------------------------------------------------------------
    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return an integer from each rank, in rank order; the bytes are not counted.

        Parameters
        ----------
        numbers : sequence of int
            Integer of this rank only.
        """
        (number,) = numbers
        return [n for (n,) in self._gather_row([number], torch.int64)]

    @marks_failure
    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> list[int]:
        """Overwrite this rank's tensors by those of rank 0; return this rank in a list if they differed, else none.

        Parameters
        ----------
        tensors : sequence of sequence of tensor
            Tensors of this rank only, written in place.
        """
        (local_tensors,) = tensors
        differed = False
        for tensor in local_tensors:
            if not tensor.numel():
                continue
            copy = tensor.detach().to(self.device).contiguous()
            before = as_bytes(copy).clone() if self.rank else None
            dist.broadcast(as_bytes(copy), src=self._global(0), group=self.group)  # back ends lack some dtypes
            if before is not None:
                differed |= not torch.equal(before, as_bytes(copy))
                assign(tensor, copy)
        return [self.rank] if differed else []

    def group_with_timeout(self, timeout_s: float) -> tuple[dist.ProcessGroup, Spare]:
        """Return the gloo process group of the same ranks with another time limit, and its entry.

        Parameters
        ----------
        timeout_s : float, seconds
            Time limit of its collectives.
        """
        return side_group(self._whole, timeout_s)

    @property
    def _whole(self) -> dist.ProcessGroup:
        return dist.distributed_c10d._get_default_group() if self.group is None else self.group

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return this rank's links inside its node and between nodes, which count their own bytes.

        Parameters
        ----------
        ranks_per_node : int
            Ranks per node, the same on all ranks.
        """
        if ranks_per_node not in self._links:
            nodes = Nodes.of(self._whole, ranks_per_node, self, device=self.device)
            links = [ProcessTransport(self.device, group) for group in (nodes.inside, nodes.between)]
            for link, spare in zip(links, nodes.spares, strict=True):
                link.spare = spare
            self._links[ranks_per_node] = links
        inside, between = self._links[ranks_per_node]
        node, place = divmod(self.rank, ranks_per_node)
        return NodeLinks({node: inside}, {place: between})

    @property
    def handed_over(self) -> tuple[int, int]:
        """Bytes sent and received so far, including those of links of nodes."""
        links = self._with_links
        return sum(link.payload_bytes for link in links), sum(link.received_bytes for link in links)

    @property
    def _with_links(self) -> list[ProcessTransport]:
        return [self, *(link for pair in self._links.values() for link in pair)]

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Inside, bytes are sent but not counted."""
        links = self._with_links
        counts = [(link.payload_bytes, link.received_bytes, link.predicted_bytes) for link in links]
        try:
            yield
        finally:
            for link, before in zip(links, counts, strict=True):
                link.payload_bytes, link.received_bytes, link.predicted_bytes = before


def _device_of(group: dist.ProcessGroup | None) -> torch.device:
    """Return the device that a group's back end needs: the GPU for NCCL, else the CPU."""
    return torch.device("cuda" if "cuda:nccl" in dist.get_backend_config(group) else "cpu")


def barrier() -> None:
    """Wait for all ranks, so that a timed collective does not include the wait for slow ranks."""
    dist.barrier()


def gather_arrays(array: torch.Tensor) -> list[torch.Tensor]:
    """Return equally shaped tensors of all ranks in rank order; this measurement traffic is not counted.

    Parameters
    ----------
    array : tensor
        Tensor of this rank.
    """
    parts = [torch.empty_like(array) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, array.contiguous())
    return parts
