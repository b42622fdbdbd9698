"""Ways to exchange shards between all pairs of ranks: each is timed at first, then the fastest is used.

The fastest way depends on the link.  In shared memory a message costs processor time, and sending all at once needs the
fewest.  On links with their own rate, sending all at once lets several ranks send to the same one while others wait.
In step every rank receives from one and sends to one at a time; pieces keep the links busy between two steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

AT_ONCE = 0  # other numbers: pieces of a shard, sent in step
PIECE_BYTES = (128 << 10, 1 << 20)  # smallest useful pieces, on links with their own rate and in memory
MOST_PIECES = 8
TRIALS = 3  # per way; the fastest one counts
SETTLED = TRIALS * (1 + len(PIECE_BYTES))  # averagings of one length after which the way is fixed


def ways_for(shard_bytes: int) -> tuple[int, ...]:
    """Return the candidates for shards of this length in bytes."""
    cut = {max(1, min(MOST_PIECES, shard_bytes // piece_bytes)) for piece_bytes in PIECE_BYTES}
    return (AT_ONCE, *sorted(cut))


class Trial:
    """Trial of ways in turn; then all ranks use the one with the smallest sum of seconds over ranks.

    Attributes
    ----------
    best_s : list of float, seconds
        Shortest time of this rank by each way.
    """

    def __init__(self, ways: Sequence[int]) -> None:
        self._ways = tuple(ways)
        self._tried, self._chosen = 0, 0 if len(ways) == 1 else None
        self.best_s = [math.inf] * len(ways)

    @property
    def way(self) -> int:
        """The way that all ranks use now."""
        return self._ways[self._turn if self._chosen is None else self._chosen]

    @property
    def _turn(self) -> int:
        return self._tried % len(self._ways)

    @property
    def settled(self) -> bool:
        """Whether the way is fixed."""
        return self._chosen is not None

    def record(self, seconds: float) -> bool:
        """Record the time of the current way on this rank; return whether the ranks must compare now."""
        self.best_s[self._turn] = min(seconds, self.best_s[self._turn])
        self._tried += 1
        return self._tried == TRIALS * len(self._ways)

    def settle(self, best_s: Sequence[Sequence[float]]) -> None:
        """Fix the way from the times of all ranks, which are the same on all ranks."""
        sums = [sum(taken) for taken in zip(*best_s, strict=True)]
        self._chosen = sums.index(min(sums))
