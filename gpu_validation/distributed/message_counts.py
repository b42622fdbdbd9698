"""How many messages a collective hands to the transport at most."""

from __future__ import annotations

import math

from .ways import ways_for


def averaging_messages(m: int, vector_bytes: int = 0) -> int:
    """Return the most messages of one averaging of m ranks, all together: lengths in two halves, then bodies, all to
    all.

    Means of whole vectors take as many or fewer, one message for every pair of ranks, or two, unless they are so long
    that shards go in pieces.

    Parameters
    ----------
    m : int
        Number of ranks.
    vector_bytes : int, bytes, optional
        Of a whole vector, where such ones travel.
    """
    pieces = max(ways_for(-(-vector_bytes // m)))
    return max(3, 2 * pieces + 1) * m * (m - 1)  # once for every length the ranks also compare seconds


def barrier_messages(m: int) -> int:
    """Return the messages of one barrier of m ranks, all together: each rank tells one other in every doubling of
    distance.
    """
    return m * math.ceil(math.log2(m))
