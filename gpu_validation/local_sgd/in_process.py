"""Transport between simulated workers of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch

from operators import Message
from operators.ddp.collectives import Refusal

from ..distributed.in_flight import Landed
from ..distributed.reduction import fold
from ..distributed.tensors import as_bytes, assign
from ..distributed.transport import NodeLinks

T = TypeVar("T")


class InProcessTransport:
    """Transport between m workers of one process; all data is present, so nothing is sent."""

    def __init__(self, m: int) -> None:
        self.size = m
        self.ranks: Sequence[int] = range(m)

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors, summed in rank order: the same tensor for every worker."""
        return [fold([owns[rank] for rank in members])] * self.size

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return the vectors of every worker's sources."""
        return [{source: owns[source] for source in sources(rank)} for rank in self.ranks]

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all messages by rank; raise Refusal if a worker has none."""
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
        """Return every worker's messages by sender, and the bits sent by each; raise Refusal if a worker has none."""
        for rank, outgoing in enumerate(messages):
            if isinstance(outgoing, int):
                raise Refusal(rank, outgoing)
        sent = {rank: outgoing for rank, outgoing in enumerate(messages) if isinstance(outgoing, Sequence)}
        bits = [sum(message.bits for message in sent.get(rank, ())) for rank in self.ranks]
        return [{sender: outgoing[rank] for sender, outgoing in sent.items()} for rank in self.ranks], bits

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return all rows."""
        return [list(row) for row in rows]

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return all rows."""
        return [list(row) for row in rows]

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return all numbers."""
        return list(numbers)

    def uncounted(self) -> AbstractContextManager[None]:
        """Change nothing inside: this transport counts no bytes."""
        return nullcontext()

    def start(self, work: Callable[[], T]) -> Landed[T]:
        """Run ``work`` now and return its result."""
        return Landed(work())

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the links inside all nodes, and between nodes for every place."""
        nodes = self.size // ranks_per_node
        inside = {node: InProcessTransport(ranks_per_node) for node in range(nodes)}
        return NodeLinks(inside, {place: InProcessTransport(nodes) for place in range(ranks_per_node)})

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> list[int]:
        """Copy worker 0's tensors into those of the other workers; return the workers whose tensors differed."""
        differed = []
        for rank, others in enumerate(tensors[1:], start=1):
            pairs = list(zip(tensors[0], others, strict=True))
            if not all(torch.equal(as_bytes(source), as_bytes(other).to(source.device)) for source, other in pairs):
                differed.append(rank)
            for source, other in pairs:
                assign(other, source.detach())
        return differed
