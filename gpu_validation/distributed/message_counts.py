"""Upper limits on the number of messages of a collective."""

from __future__ import annotations

import math

from .ways import ways_for


def averaging_messages(m: int, vector_bytes: int = 0) -> int:
    """Return the largest number of messages of one averaging of m ranks: lengths in two halves, then bodies.

    Means of whole vectors need one or two messages per pair of ranks, or more if their shards are sent in pieces.
    ``vector_bytes`` is the length of a whole vector.
    """
    pieces = max(ways_for(-(-vector_bytes // m)))
    return max(3, 2 * pieces + 1) * m * (m - 1)  # + 1: once per length the ranks also compare seconds


def barrier_messages(m: int) -> int:
    """Return the number of messages of one barrier of m ranks: one per rank and doubling of distance."""
    return m * math.ceil(math.log2(m))
