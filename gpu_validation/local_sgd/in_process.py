"""A transport between simulated workers of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch

from operators import Message
from operators.ddp.gather import Refusal

from ..distributed.in_flight import Landed
from ..distributed.reduction import fold
from ..distributed.tensors import assign
from ..distributed.transport import NodeLinks

T = TypeVar("T")


class InProcessTransport:
    """A transport between m workers of one process: all of them are present, so nothing is sent.

    Parameters
    ----------
    m : int
        Number of workers.
    """

    def __init__(self, m: int) -> None:
        self.size = m
        self.ranks: Sequence[int] = range(m)

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors, folded in rank order: one tensor, given to all.

        Parameters
        ----------
        owns : sequence of tensor
            The vectors of the ranks hosted here.
        members : sequence of int
            The ranks whose models count.
        """
        return [fold([owns[rank] for rank in members])] * self.size

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return every worker's sources.

        Parameters
        ----------
        owns : sequence of tensor
            The vectors of the ranks hosted here.
        sources : callable
            The ranks that a rank listens to.
        """
        return [{source: owns[source] for source in sources(rank)} for rank in self.ranks]

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all messages by rank.

        Parameters
        ----------
        messages : sequence of Message or int or None
            One message of every rank, in rank order.
        position : int
            Place of the first of the local vectors among all.
        exact : sequence of int or None, bits, optional
            Lengths of the messages, which change nothing here.

        Raises
        ------
        Refusal
            If a worker has none.
        """
        for rank, message in enumerate(messages):
            if isinstance(message, int):
                raise Refusal(rank, message)
        return {rank: message for rank, message in enumerate(messages) if isinstance(message, Message)}

    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return every worker's messages by sender, and the bits that each has sent.

        Parameters
        ----------
        messages : sequence of sequence of Message or int or None
            Of every worker, one for each.
        position : int
            Place of the first of the local vectors among all.
        exact : sequence of int or None, bits, optional
            Lengths of the messages, which change nothing here.

        Raises
        ------
        Refusal
            If a worker has none.
        """
        for rank, outgoing in enumerate(messages):
            if isinstance(outgoing, int):
                raise Refusal(rank, outgoing)
        sent = {rank: outgoing for rank, outgoing in enumerate(messages) if isinstance(outgoing, Sequence)}
        bits = [sum(message.bits for message in sent.get(rank, ())) for rank in self.ranks]
        return [{sender: outgoing[rank] for sender, outgoing in sent.items()} for rank in self.ranks], bits

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return all rows.

        Parameters
        ----------
        rows : sequence of sequence of float
            A few numbers of every rank.
        """
        return [list(row) for row in rows]

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return all rows.

        Parameters
        ----------
        rows : sequence of sequence of int
            A few integers of every rank.
        """
        return [list(row) for row in rows]

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return all numbers.

        Parameters
        ----------
        numbers : sequence of int
            One integer of every rank hosted here.
        """
        return list(numbers)

    def uncounted(self) -> AbstractContextManager[None]:
        """Nothing is counted anyway."""
        return nullcontext()

    def start(self, work: Callable[[], T]) -> Landed[T]:
        """Return work that is done at once.

        Parameters
        ----------
        work : callable
            What uses this transport.
        """
        return Landed(work())

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the links of all nodes and of all places.

        Parameters
        ----------
        ranks_per_node : int
            Ranks of a node.
        """
        nodes = self.size // ranks_per_node
        inside = {node: InProcessTransport(ranks_per_node) for node in range(nodes)}
        return NodeLinks(inside, {place: InProcessTransport(nodes) for place in range(ranks_per_node)})

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> None:
        """Copy worker 0's tensors into the others'.

        Parameters
        ----------
        tensors : sequence of sequence of tensor
            The tensors that are replaced, in place.
        """
        for others in tensors[1:]:
            for source, other in zip(tensors[0], others, strict=True):
                assign(other, source.detach())
