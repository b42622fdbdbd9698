"""How many messages a collective hands to the transport at most."""

from __future__ import annotations

import math


def averaging_messages(m: int) -> int:
    """Return the most messages of one averaging of m ranks, all together: lengths in two halves, then bodies, all to
    all.

    Means of whole vectors take as many or fewer: one message for every pair of ranks, or two.
    """
    return 3 * m * (m - 1)


def barrier_messages(m: int) -> int:
    """Return the messages of one barrier of m ranks, all together: each rank tells one other in every doubling of
    distance.
    """
    return m * math.ceil(math.log2(m))
