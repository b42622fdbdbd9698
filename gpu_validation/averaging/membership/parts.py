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

    gone: Set[int] = frozenset()  # ranks that have left, by the last exchange
    over = all_left = False  # whether all ranks have left, and all that are hosted here
    empty = False  # whether no rank took part in the last synchronisation

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.since: list[int] = []  # local steps of the ranks hosted here since the last exchange

    def leave(self, rank: int) -> None:
        """Record that a rank hosted here has no more data.

        Raises
        ------
        ValueError
            If ranks may not leave, if this one is not hosted here, or has left before.
        """
        raise ValueError("leave() needs membership=Uneven(): give it on all ranks")

    def record_step(self) -> list[bool]:
        """Count a local step, and return which of the ranks hosted here count theirs."""
        return [False] * len(self._transport.ranks)

    def restart(self, steps: int) -> None:
        """Continue after so many local steps since the last exchange."""

    def begin_sync(self, mixing: Mixing, catch_up: Callable[[int], None]) -> Mixing:
        """Exchange the step counts, and return the mixing of the ranks that take part.

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

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.left: set[int] = set()  # of the ranks hosted here
        self.since = [0] * len(transport.ranks)

    def leave(self, rank: int) -> None:
        """Record that a rank hosted here has no more data."""
        if rank not in self._transport.ranks or rank in self.left:
            staying = [r for r in self._transport.ranks if r not in self.left]
            raise ValueError(f"only a rank hosted here can leave, once; got rank {rank}: choose from {staying}")
        self.left.add(rank)
        self.gone = self.gone | {rank}
        self.all_left = len(self.left) == len(self._transport.ranks)

    def record_step(self) -> list[bool]:
        """Count a local step of the ranks that have not left."""
        stepping = [rank not in self.left for rank in self._transport.ranks]
        self.since = [count + steps for count, steps in zip(self.since, stepping, strict=True)]
        return stepping

    def restart(self, steps: int) -> None:
        """Continue after so many local steps since the last exchange."""
        self.since = [steps] * len(self.since)

    def begin_sync(self, mixing: Mixing, catch_up: Callable[[int], None]) -> Mixing:
        """Exchange the step counts, and average over the ranks that take part."""
        participants = self._exchange(self.rows(self.since))
        self.gone = {rank for rank in range(self._transport.size) if rank not in participants.active}
        self.over, self.empty = not participants.active, not participants.members
        self.restart(0)
        catch_up(participants.steps)
        return Present(participants.members)

    def rows(self, steps: Sequence[int]) -> list[list[float]]:
        """Return the step count of every rank hosted here, negative if it has left."""
        ranks = zip(self._transport.ranks, steps, strict=True)
        return [[float(-1 - count if rank in self.left else count)] for rank, count in ranks]

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
