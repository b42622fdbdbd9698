"""Who takes part in a synchronisation where ranks may run out of data: a roll call before every one of them.

A rank counts if it has made a local step since the one before.  A rank that has left goes on moving messages for the
others, so that the process group stays as it is and all ranks hold the same model after every synchronisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ..distributed.step_check import UnevenSteps
from ..distributed.transport import Transport
from .mixing import Mixing


@final
@dataclass(frozen=True)
class Present(Mixing):
    """Average the models of some ranks; all ranks get the mean.

    Parameters
    ----------
    ranks : tuple of int
        Those that count, ascending.
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
class Attendance:
    """What a roll call has told, the same on all ranks.

    Parameters
    ----------
    members : tuple of int
        The ranks that have made a local step since the last one, or that go on anyway.
    active : tuple of int
        Those that go on.
    steps : int
        The most local steps of a rank since the last one.
    """

    members: tuple[int, ...]
    active: tuple[int, ...]
    steps: int


class RollCall:
    """What the ranks hosted here say of themselves, and what they hear of the others.

    Parameters
    ----------
    transport : Transport
        How it travels: a number of 8 bytes from every rank to every other.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.left: set[int] = set()  # of the ranks hosted here
        self.gone: set[int] = set()  # of all, as far as heard
        self.over = False

    def leave(self, rank: int) -> None:
        """Note that a rank hosted here has no more data.

        Parameters
        ----------
        rank : int
            Which one.

        Raises
        ------
        ValueError
            If it is not hosted here, or has left before.
        """
        if rank not in self._transport.ranks or rank in self.left:
            staying = [r for r in self._transport.ranks if r not in self.left]
            raise ValueError(f"rank {rank} cannot leave: those that can are {staying}")
        self.left.add(rank)
        self.gone.add(rank)

    @property
    def all_left(self) -> bool:
        """Whether no rank hosted here goes on."""
        return len(self.left) == len(self._transport.ranks)

    def stepping(self) -> list[bool]:
        """Return which of the ranks hosted here make local steps."""
        return [rank not in self.left for rank in self._transport.ranks]

    def rows(self, steps: Sequence[int]) -> list[list[float]]:
        """Return what the ranks hosted here have to say.

        Parameters
        ----------
        steps : sequence of int
            Their local steps since they said so last.
        """
        ranks = zip(self._transport.ranks, steps, strict=True)
        return [[float(-1 - count if rank in self.left else count)] for rank, count in ranks]

    def call(self, rows: Sequence[Sequence[float]]) -> Attendance:
        """Return who is there; every rank must call it.

        Parameters
        ----------
        rows : sequence of sequence of float
            What ``rows`` gave.

        Raises
        ------
        UnevenSteps
            On every rank, if ranks that go on have made different numbers of steps.
        """
        numbers = [int(number) for (number,) in self._transport.all_gather_floats(rows)]
        active = tuple(rank for rank, number in enumerate(numbers) if number >= 0)
        counts = [number if number >= 0 else -1 - number for number in numbers]
        going = {counts[rank] for rank in active}
        if len(going) > 1 or (going and max(counts) > max(going)):
            raise UnevenSteps(
                f"the ranks have made {counts} local steps in this round, and those that go on are {active}"
            )
        return Attendance(tuple(r for r, count in enumerate(counts) if count or r in active), active, max(counts))

    def note(self, attendance: Attendance) -> None:
        """Keep who goes on.

        Parameters
        ----------
        attendance : Attendance
            What ``call`` gave.
        """
        self.gone = {rank for rank in range(self._transport.size) if rank not in attendance.active}
