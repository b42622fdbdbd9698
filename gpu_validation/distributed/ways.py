"""Ways to move shards between all pairs of ranks, and how long each takes here: tried at first, then the fastest stays.

Which one is faster depends on what the ranks talk through.  In memory a message costs processor time, and all at once
takes the fewest.  Into a link with a rate of its own all at once lets several ranks send to the same one while others
wait: in step every rank hears one and is heard by one at a time, and pieces keep the links busy between two steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

AT_ONCE = 0  # else the pieces of a shard, which go in step
PIECE_BYTES = (128 << 10, 1 << 20)  # of a link with a rate of its own, and of memory: the least that pieces pay from
MOST_PIECES = 8
TRIALS = 3  # of every way; the fastest one counts
SETTLED = TRIALS * (1 + len(PIECE_BYTES))  # averagings of one length after which the way stays


def ways_for(shard_bytes: int) -> tuple[int, ...]:
    """Return the ways that may be fastest for shards of so many bytes.

    Parameters
    ----------
    shard_bytes : int, bytes
        Of the longest one.
    """
    cut = {max(1, min(MOST_PIECES, shard_bytes // piece_bytes)) for piece_bytes in PIECE_BYTES}
    return (AT_ONCE, *sorted(cut))


class Trial:
    """The ways in turns; when each has been tried the ranks compare, and all take the one whose seconds sum to least.

    Parameters
    ----------
    ways : sequence of int
        Numbers of pieces; with a single one nothing is tried.

    Attributes
    ----------
    best_s : list of float, seconds
        The least that this rank has taken by each way.
    """

    def __init__(self, ways: Sequence[int]) -> None:
        self._ways = tuple(ways)
        self._tried, self._chosen = 0, 0 if len(ways) == 1 else None
        self.best_s = [math.inf] * len(ways)

    @property
    def way(self) -> int:
        """What all ranks use now."""
        return self._ways[self._turn if self._chosen is None else self._chosen]

    @property
    def _turn(self) -> int:
        return self._tried % len(self._ways)

    @property
    def settled(self) -> bool:
        """Whether the way stays."""
        return self._chosen is not None

    def note(self, seconds: float) -> bool:
        """Take in what the way has taken; returns whether the ranks are to compare.

        Parameters
        ----------
        seconds : float, seconds
            On this rank.
        """
        self.best_s[self._turn] = min(seconds, self.best_s[self._turn])
        self._tried += 1
        return self._tried == TRIALS * len(self._ways)

    def settle(self, best_s: Sequence[Sequence[float]]) -> None:
        """Choose, by the same numbers on all ranks.

        Parameters
        ----------
        best_s : sequence of sequence of float, seconds
            Of every rank, in rank order.
        """
        sums = [sum(taken) for taken in zip(*best_s, strict=True)]
        self._chosen = sums.index(min(sums))
