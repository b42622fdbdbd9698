"""A long vector is coded in segments, each with trellises and coder states of its own.

So the encoder's working memory does not grow with the vector and stays in the cache, and segments can be worked on
side by side.  Norm, model and dither are common to all.
"""

from __future__ import annotations

import numpy as np

from .dither import WEYL

SEGMENT = 1 << 17  # coordinates of every segment but the last, which has up to twice as many
COUNT_BYTES = 4  # of the number of words, before every segment but the last


def count(d: int, segment: int = SEGMENT) -> int:
    """Return how many segments d coordinates have."""
    return max(1, d // segment)


def segments(d: int, segment: int = SEGMENT) -> list[slice]:
    """Return the coordinates of each."""
    n = count(d, segment)
    return [slice(j * segment, (j + 1) * segment if j < n - 1 else d) for j in range(n)]


def seeds_from(start: int, seeds: tuple[np.uint32, np.uint32]) -> tuple[np.uint32, np.uint32]:
    """Return seeds with which index 0 has the hash that index ``start`` has with the given ones."""
    first, second = seeds
    return np.uint32((int(first) + start * WEYL) & 0xFFFFFFFF), second
