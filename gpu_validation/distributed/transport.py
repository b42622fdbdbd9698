"""Interface of transports between the ranks of a run: processes with torch.distributed, or simulated workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from operators import Message

from .in_flight import Flight

T = TypeVar("T")


class VectorTransport(Protocol):
    """Transport of vectors; a process hosts one rank, or all of them as simulated workers.

    Attributes
    ----------
    size : int
        Number of ranks.
    ranks : sequence of int
        Ranks hosted here; vectors are passed and returned in their order.
    """

    size: int
    ranks: Sequence[int]

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors for every rank hosted here, summed in rank order."""

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return the vectors of the sources of every rank hosted here, by rank; a rank is never its own source."""


class Transport(VectorTransport, Protocol):
    """Transport of vectors, messages, numbers and the initial model."""

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all ranks' messages by rank.

        ``messages`` are those of the ranks hosted here, or the numbers of refusals.
        """

    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return the messages for every rank hosted here by sender, and the bits that each rank has sent.

        ``messages`` are those of the ranks hosted here, one per receiver, or the numbers of refusals.
        """

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the rows of all ranks, in rank order."""

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the rows of all ranks, in rank order."""

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return one integer of every rank, in rank order."""

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> list[int]:
        """Overwrite all ranks' tensors by those of rank 0; return the ranks hosted here whose tensors differed."""

    def uncounted(self) -> AbstractContextManager[None]:
        """Return a context in which bytes are sent but not counted."""

    def start(self, work: Callable[[], T]) -> Flight[T]:
        """Start work of this transport, in order of the calls.

        Nothing else may use the transport until the result has been taken.
        """

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the links of the ranks hosted here, inside nodes and between them."""


@dataclass(frozen=True)
class NodeLinks:
    """Links of ranks in nodes; consecutive ranks share a node, as torchrun numbers them.

    Parameters
    ----------
    inside : mapping of int to Transport
        Links between the ranks of a node, by node; a rank's number there is its place.
    between : mapping of int to Transport
        Links between the ranks with one place in all nodes, by place; a rank's number there is its node.
    """

    inside: Mapping[int, Transport]
    between: Mapping[int, Transport]
