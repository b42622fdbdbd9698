"""What each rank is doing, in memory that it shares with the process that started it.

That process names it when a rank has died, hung or been interrupted.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable

SLOT = 512  # bytes per rank

_latest: Positions | None = None  # of the ranks that this process started last
_memory: mmap.mmap | None = None  # of this rank
_start = 0
_parts = {"unit": "", "step": "", "tensor": "", "exchange": ""}


class Positions:
    """Positions of all ranks; made before they fork.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        global _latest
        _latest = self
        self.ranks = ranks
        self._memory = mmap.mmap(-1, ranks * SLOT)

    def forget(self) -> None:
        """Note that the ranks have ended as they should."""
        global _latest
        _latest = None

    def take(self, rank: int) -> None:
        """Make this process write the position of a rank.

        Parameters
        ----------
        rank : int
            Rank of this process.
        """
        global _memory, _start
        _memory, _start = self._memory, rank * SLOT

    def of(self, rank: int) -> str:
        """Return the position of a rank; empty if it has not written one.

        Parameters
        ----------
        rank : int
            Rank.
        """
        slot = self._memory[rank * SLOT : (rank + 1) * SLOT]
        return slot.partition(b"\0")[0].decode(errors="replace")

    def describe(self, ranks: Iterable[int]) -> str:
        """Return the positions of some ranks in words, equal ones together; empty without any.

        Parameters
        ----------
        ranks : iterable of int
            Ranks.
        """
        places: dict[str, list[str]] = {}
        for rank in ranks:
            if place := self.of(rank):
                places.setdefault(place, []).append(str(rank))
        names = {place: f"rank{'s' if len(of) > 1 else ''} {', '.join(of)}" for place, of in places.items()}
        return "; ".join(f"{name}: {place}" for place, name in names.items())


def unfinished_positions() -> str:
    """Return the positions of the ranks that this process started last, unless they ended as they should."""
    return "" if _latest is None else _latest.describe(range(_latest.ranks))


def at(**parts: str) -> None:
    """Write what this rank is doing; without effect outside of ``run_ranks``.

    Parameters
    ----------
    **parts : str
        ``unit``, ``step``, ``tensor`` or ``exchange``; the parts after the first given one are cleared.
    """
    if _memory is None:
        return
    names = list(_parts)
    first = min(names.index(name) for name in parts)
    _parts.update(dict.fromkeys(names[first:], "") | parts)
    text = ", ".join(filter(None, _parts.values())).encode()[: SLOT - 1]
    _memory[_start : _start + SLOT] = text.ljust(SLOT, b"\0")
