"""Membership parts, and which ranks take part in a synchronisation where ranks may run out of data.

A rank counts if it has made a local step since the last synchronisation.  A rank that has left still
forwards messages, so that the process group does not change and all ranks hold the same model afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import final

import numpy as np

from ...processes.quorum import Quorum
from ...processes.step_check import UnevenSteps
from ...processes.transport import Transport
from ...records.numbers import whole_number
from ..mixing import Mixing


@dataclass(frozen=True)
class All:
    """All ranks take part in every averaging, each after the same number of local steps."""


@dataclass(frozen=True)
class Uneven:
    """Ranks may have different numbers of local steps; each rank ends with ``leave``.

    Before every averaging, each rank sends its number of steps (8 bytes) to every other rank.
    """


@dataclass(frozen=True)
class Nodes:
    """Consecutive ranks form a node and sum their movements exactly, one shard per rank.

    Nodes exchange the compressed means of the shards.  A node then sends as much over the slow link as one rank would.

    Parameters
    ----------
    ranks_per_node : int
        Ranks of a node, >= 1.

    Raises
    ------
    ValueError
        For any other value.
    """

    ranks_per_node: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks_per_node", whole_number("ranks_per_node", self.ranks_per_node))
        if self.ranks_per_node < 1:
            raise ValueError(f"ranks_per_node must be >= 1; got {self.ranks_per_node}")


Membership = All | Uneven | Nodes | Quorum


@final
@dataclass(frozen=True)
class Present(Mixing):
    """Average the models of some ranks; all ranks receive the mean.

    Parameters
    ----------
    ranks : tuple of int
        Ranks that count, ascending.
    """

    ranks: tuple[int, ...]

    common = True

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks."""
        return self.ranks

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return equal weights in the ranks' columns."""
        W = np.zeros((m, m))
        W[:, list(self.ranks)] = 1 / len(self.ranks)
        return W


@dataclass(frozen=True)
class Participants:
    """Ranks that take part in a synchronisation, the same on all ranks.

    Parameters
    ----------
    members : tuple of int
        Ranks that have made a local step since the last synchronisation, or that are still training.
    active : tuple of int
        Ranks that are still training.
    steps : int
        Largest number of local steps of any rank since the last synchronisation.
    """

    members: tuple[int, ...]
    active: tuple[int, ...]
    steps: int


class Presence:
    """Presence of ranks that all train to the end."""

    varies = False  # whether ranks may leave, so that a synchronisation begins with an exchange
    gone: Set[int] = frozenset()  # ranks that have left, by the last exchange
    over = all_left = False  # whether all ranks have left, and all that are hosted here
    empty = False  # whether no rank took part in the last synchronisation

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def leave(self, rank: int, steps: int) -> None:
        """Record that a rank hosted here has no more data, after so many local steps since the last exchange.

        Raises
        ------
        ValueError
            If ranks may not leave, if this one is not hosted here, or has left before.
        """
        raise ValueError("leave() needs membership=Uneven(): give it on all ranks")

    def stepping(self) -> list[bool]:
        """Return which of the ranks hosted here make local steps."""
        return [True] * len(self._transport.ranks)

    def begin_sync(self, mixing: Mixing, steps: int, catch_up: Callable[[int], None]) -> Mixing:
        """Exchange the counts of local steps, and return the mixing of the ranks that take part.

        ``catch_up`` receives the largest count of all ranks.
        """
        return mixing

    def rows(self, steps: Sequence[int]) -> list[list[float]]:
        """Return what every rank hosted here tells the others, from its local steps since the last exchange."""
        return []

    def members(self, rows: Sequence[Sequence[float]]) -> tuple[int, ...]:
        """Return the ranks that take part in a message, by the ``rows`` of all of them."""
        return tuple(range(self._transport.size))


class UnevenPresence(Presence):
    """Presence of ranks that may leave; each sends its step count (8 bytes) to every other rank."""

    varies = True

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._left: dict[int, int] = {}  # ranks hosted here, with their local steps since the last exchange

    def leave(self, rank: int, steps: int) -> None:
        """Record that a rank hosted here has no more data."""
        if rank not in self._transport.ranks or rank in self._left:
            staying = [r for r in self._transport.ranks if r not in self._left]
            raise ValueError(f"only a rank hosted here can leave, once; got rank {rank}: choose from {staying}")
        self._left[rank] = steps
        self.gone = self.gone | {rank}
        self.all_left = len(self._left) == len(self._transport.ranks)

    def stepping(self) -> list[bool]:
        """Return which of the ranks hosted here have not left."""
        return [rank not in self._left for rank in self._transport.ranks]

    def begin_sync(self, mixing: Mixing, steps: int, catch_up: Callable[[int], None]) -> Mixing:
        """Exchange the counts of local steps, and average over the ranks that take part."""
        counts = [self._left.get(rank, steps) for rank in self._transport.ranks]
        participants = self._exchange(self.rows(counts))
        self.gone = {rank for rank in range(self._transport.size) if rank not in participants.active}
        self.over, self.empty = not participants.active, not participants.members
        self._left = dict.fromkeys(self._left, 0)
        catch_up(participants.steps)
        return Present(participants.members)

    def rows(self, steps: Sequence[int]) -> list[list[float]]:
        """Return the step count of every rank hosted here, negative if it has left."""
        ranks = zip(self._transport.ranks, steps, strict=True)
        return [[float(-1 - count if rank in self._left else count)] for rank, count in ranks]

    def members(self, rows: Sequence[Sequence[float]]) -> tuple[int, ...]:
        """Exchange the rows, and return the ranks that take part; every rank must call it."""
        return self._exchange(rows).members

    def _exchange(self, rows: Sequence[Sequence[float]]) -> Participants:
        """Exchange the rows; raise UnevenSteps on all ranks unless those still training are equally far."""
        numbers = [int(number) for (number,) in self._transport.all_gather_floats(rows)]
        active = tuple(rank for rank, number in enumerate(numbers) if number >= 0)
        counts = [number if number >= 0 else -1 - number for number in numbers]
        going = {counts[rank] for rank in active}
        if len(going) > 1 or (going and max(counts) > max(going)):
            raise UnevenSteps(
                f"all training ranks must make equally many local steps; got {counts}, of which {active} still train"
            )
        return Participants(tuple(r for r, count in enumerate(counts) if count or r in active), active, max(counts))
