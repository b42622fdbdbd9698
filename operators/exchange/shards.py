"""Which rank owns which entries of a vector."""

from __future__ import annotations


def shards(d: int, m: int) -> list[slice]:
    """Return the shard of every rank, in rank order: the lengths differ by 1 at most, and some are 0 where d < m.

    Parameters
    ----------
    d : int
        Number of coordinates.
    m : int
        Number of ranks.
    """
    return [slice(rank * d // m, (rank + 1) * d // m) for rank in range(m)]


def lengths(d: int, m: int) -> list[int]:
    """Return the number of entries of every shard.

    Parameters
    ----------
    d : int
        Number of coordinates.
    m : int
        Number of ranks.
    """
    return [shard.stop - shard.start for shard in shards(d, m)]
