"""What joins the ranks of a run: processes by torch.distributed, or simulated workers of one process."""

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
    """Joins the ranks; a process hosts one of them, or all of them as simulated workers.

    Attributes
    ----------
    size : int
        Number of ranks.
    ranks : sequence of int
        Those hosted here; vectors are given and returned in their order.
    """

    size: int
    ranks: Sequence[int]

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors for every rank hosted here, folded in rank order."""

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return for every rank hosted here the vectors of its sources, by rank; its own is never one of them."""


class Transport(VectorTransport, Protocol):
    """A transport that also moves messages, numbers and the starting point."""

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all ranks' messages by rank, from those of the ranks hosted here, or the reasons why they
        have none.
        """

    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return the messages for every rank hosted here, by sender, and the bits that each rank has sent to all; from
        those of the ranks hosted here, one for each rank, or the reasons why they have none.
        """

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return a few numbers of every rank, in rank order."""

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return a few integers of every rank, in rank order."""

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return one integer of every rank, in rank order."""

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> None:
        """Replace all ranks' tensors by rank 0's, in place."""

    def uncounted(self) -> AbstractContextManager[None]:
        """Return bytes handed over within are not counted."""

    def start(self, work: Callable[[], T]) -> Flight[T]:
        """Return work of this transport under way, begun in the order of the calls; nothing else may use the transport
        until its result has been taken.
        """

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the same ranks in nodes: the links of those hosted here."""


@dataclass(frozen=True)
class NodeLinks:
    """The links of ranks in nodes; consecutive ranks are on the same node, as torchrun numbers them.

    Parameters
    ----------
    inside : mapping of int to Transport
        Between the ranks of a node, by node; a rank's number there is its place.
    between : mapping of int to Transport
        Between the ranks with one place in their nodes, by place; a rank's number there is its node.
    """

    inside: Mapping[int, Transport]
    between: Mapping[int, Transport]
