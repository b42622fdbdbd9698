"""Moving packed messages and whole models between ranks, and counting every byte handed to the transport."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from operators import Message
from operators.ddp.frames import Undeclared
from operators.ddp.gather import Gather, predicted_payload_bytes
from operators.ddp.nodes import Nodes
from operators.ddp.scatter import Scatter, predicted_scatter_bytes

from .in_flight import InThread
from .spare_groups import marks_failure, spare_group
from .step_check import UnevenSteps
from .tensors import as_bytes, assign
from .transport import NodeLinks
from .vectors import Vectors

PLACE_BITS = 32  # of a message: how many local steps its sender has made

T = TypeVar("T")


class ProcessTransport(Vectors):
    """Joins the ranks of a process group; this process is one of them.

    Parameters
    ----------
    device : device or str or None, optional
        Where messages are put for the transport; by default the GPU under NCCL, else the CPU.
    group : ProcessGroup or None, optional
        A process group of torch.distributed; by default the one of all ranks.

    Notes
    -----
    ``payload_bytes`` counts what this rank has handed to the transport, once for each receiver;
    ``received_bytes`` what the others have handed over for it;
    ``predicted_bytes`` is what all ranks together should have handed over, from the lengths alone.  The set-up
    (``all_gather_int``, ``broadcast``, and how the ranks compare ``ways``) is not counted.
    """

    def __init__(self, device: torch.device | str | None = None, group: dist.ProcessGroup | None = None) -> None:
        super().__init__(group, torch.device(device) if device is not None else _device_of(group))
        # let go of them before the interpreter ends: threads of a back end that still run then may abort the process
        weakref.finalize(self, self._groups.clear)
        self._latest: InThread | None = None
        self._links: dict[int, list[ProcessTransport]] = {}

    @classmethod
    def apart(cls, group: dist.ProcessGroup | None = None) -> ProcessTransport:
        """Return a transport between the ranks of a group by a group of its own, for work beside other collectives.

        The group is used again when the transport has been dropped on all ranks.

        Parameters
        ----------
        group : ProcessGroup or None, optional
            A process group of torch.distributed, whose time-out it keeps; by default the one of all ranks.
        """
        transport = cls(group=group)
        parent = dist.distributed_c10d._get_default_group() if group is None else group
        own_group, spare = spare_group(parent, transport, lambda free: transport.all_gather_int([free]))
        transport._groups[None], transport.spare = own_group, spare
        transport.device = _device_of(transport.group)
        return transport

    def rejoin(self) -> None:
        """Take the default process group as it is now for another one that has been destroyed; counts go on."""
        self._groups.clear()
        self._groups[None] = None
        self._take_places()
        self._links.clear()

    def start(self, work: Callable[[], T]) -> InThread[T]:
        """Return work in a thread, which begins when the work before it has ended.

        Parameters
        ----------
        work : callable
            What uses this transport; until its result has been taken, nothing else may.
        """
        self._latest = InThread(work, self._latest, self.device)
        if self.spare is not None:
            self.spare.thread = self._latest.thread
        return self._latest

    # -- messages ----------------------------------------------------------------------------------------
    @marks_failure
    def all_gather(self, message: Message | int, exact: Sequence[int] | None = None) -> list[Message]:
        """Return the messages of all ranks, in rank order; the own one is returned as it is.

        Parameters
        ----------
        message : Message or int
            Or the number of a reason why there is none.
        exact : sequence of int or None, bits, optional
            Lengths of all ranks' messages, where all know them.

        Raises
        ------
        Refusal
            On every rank, if a rank has none.
        """
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
        """Add the bytes of an exchange, also of one that nobody takes anything from."""
        self.payload_bytes += exchange.payload_bytes
        self.received_bytes += exchange.received_bytes
        self.predicted_bytes += predicted_bytes

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return the messages of all ranks by rank; each travels with its sender's position.

        Parameters
        ----------
        messages : sequence of Message or int or None
            Of this rank alone; None, sent as an empty one, if it has nothing to say; the number of a reason if it
            cannot go on.
        position : int
            How many local steps it has made, below 2^32.
        exact : sequence of int or None, bits, optional
            Lengths of all ranks' messages, where all know them: as many bytes then go in one collective.

        Raises
        ------
        UnevenSteps
            On every rank, unless all are equally far, and Refusal if a rank cannot go on.
        Undeclared
            On every rank, if a message is not as long as ``exact`` says; its bytes are counted.
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
            Of this rank alone: one for each rank; None, sent as empty ones, if it has nothing to say; the number of a
            reason if it cannot go on.
        position : int
            How many local steps it has made, below 2^32.
        exact : sequence of int or None, bits, optional
            Lengths of the messages for every rank, where all know them: as many bytes then go in one collective.

        Raises
        ------
        UnevenSteps
            On every rank, unless all are equally far, and Refusal if a rank cannot go on.
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
        """Return a few numbers of every rank, as float64, in rank order.

        Parameters
        ----------
        rows : sequence of sequence of float
            A few numbers of every rank.
        """
        (row,) = rows
        return self._numbers(row, torch.float64)

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return a few integers of every rank, in rank order.

        Parameters
        ----------
        rows : sequence of sequence of int
            A few 64-bit integers of every rank hosted here, equally many on all ranks.
        """
        (row,) = rows
        return self._numbers(row, torch.int64)

    def _numbers(self, row: Sequence[float], dtype: torch.dtype) -> list[list]:
        self.payload_bytes += (self.size - 1) * 8 * len(row)
        self.received_bytes += (self.size - 1) * 8 * len(row)
        self.predicted_bytes += self.size * (self.size - 1) * 8 * len(row)
        return self._gather_row(row, dtype)

    # -- set-up ------------------------------------------------------------------------------------------
    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return one integer of every rank, in rank order.

        Parameters
        ----------
        numbers : sequence of int
            One integer of every rank hosted here.
        """
        (number,) = numbers
        return [n for (n,) in self._gather_row([number], torch.int64)]

    @marks_failure
    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> None:
        """Replace the tensors of the rank hosted here by those of rank 0, in place.

        Parameters
        ----------
        tensors : sequence of sequence of tensor
            The tensors that are replaced, in place.
        """
        (local_tensors,) = tensors
        for tensor in local_tensors:
            if not tensor.numel():
                continue
            copy = tensor.detach().to(self.device).contiguous()
            dist.broadcast(as_bytes(copy), src=self._global(0), group=self.group)  # back ends lack some dtypes
            if self.rank:
                assign(tensor, copy)

    def waiting_room(self, timeout_s: float) -> dist.ProcessGroup:
        """Return a process group of the same ranks, on the CPU, whose collectives wait for so long.

        Parameters
        ----------
        timeout_s : float, seconds
            How long the others wait.
        """
        room = self._groups.get(timeout_s)
        if room is None:
            room = self._groups[timeout_s] = dist.new_group(
                [self._global(rank) for rank in range(self.size)],
                timeout=timedelta(seconds=timeout_s),
                backend="gloo",
                use_local_synchronization=True,
            )
        return room

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return this rank's two links, inside its node and between nodes; they count their own bytes.

        Parameters
        ----------
        ranks_per_node : int
            Ranks of a node; all ranks must ask for the same.
        """
        if ranks_per_node not in self._links:
            whole = dist.distributed_c10d._get_default_group() if self.group is None else self.group
            nodes = Nodes.of(whole, ranks_per_node)
            self._links[ranks_per_node] = [ProcessTransport(self.device, g) for g in (nodes.inside, nodes.between)]
        inside, between = self._links[ranks_per_node]
        node, place = divmod(self.rank, ranks_per_node)
        return NodeLinks({node: inside}, {place: between})

    @property
    def handed_over(self) -> tuple[int, int]:
        """Bytes sent and received so far, those by the links of nodes included."""
        links = [self, *(link for pair in self._links.values() for link in pair)]
        return sum(link.payload_bytes for link in links), sum(link.received_bytes for link in links)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Return for set-up that goes the way of averagings: bytes handed over within are not counted."""
        links = [self, *(link for pair in self._links.values() for link in pair)]
        counts = [(link.payload_bytes, link.received_bytes, link.predicted_bytes) for link in links]
        try:
            yield
        finally:
            for link, before in zip(links, counts, strict=True):
                link.payload_bytes, link.received_bytes, link.predicted_bytes = before


def _device_of(group: dist.ProcessGroup | None) -> torch.device:
    """Return NCCL takes tensors on the GPU only, gloo is fastest on the CPU's."""
    return torch.device("cuda" if "cuda:nccl" in dist.get_backend_config(group) else "cpu")


def barrier() -> None:
    """Wait for all ranks, so that a timed collective does not include the wait for stragglers."""
    dist.barrier()


def gather_arrays(array: torch.Tensor) -> list[torch.Tensor]:
    """Return equal-shaped tensors of all ranks in rank order (measurement traffic, never counted as payload).

    Parameters
    ----------
    array : tensor
        This rank's tensor.
    """
    parts = [torch.empty_like(array) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, array.contiguous())
    return parts
