"""Joined messages of two operators: their sizes, and a scale at which no part underflows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..bits import elias
from ..operator import Operator, Randomness, Size
from ..quantisers.scale import largest

SMALL, LIFT = 2.0**-62, 64  # below SMALL, a vector is multiplied by 2^LIFT
FLAG_BITS = 1  # whether the vector was multiplied


def prescale(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (x, 0), or (2^64 x, 1) if ``max|x| < 2^-62``, so that small parts stay above 2^-126.

    Operators may send numbers below 2^-126 as zero, which is allowed for a whole vector, but not for a part of one
    that they get from another operator.
    """
    if 0 < float(largest(x)) < SMALL:
        return x * np.float32(2.0**LIFT), 1
    return x, 0


def flag_field(flag: int) -> tuple[np.ndarray, int]:
    """Return the flag of ``prescale`` as a field of one bit."""
    return np.array([flag << 7], np.uint8), FLAG_BITS


def unscale(x: np.ndarray, flag: int) -> np.ndarray:
    """Invert ``prescale``."""
    return x * np.float32(2.0**-LIFT) if flag else x


@lru_cache(maxsize=1024)
def exact_bits(operator: Operator, d: int) -> int | None:
    """Return ``operator.bits(d).exact``, cached: other entries of a size may need a search."""
    return operator.bits(d).exact


def joined_size(sizes: Sequence[Size]) -> Size:
    """Return the size of joined messages: a prefix for each one without an exact length, and the flag."""
    if all(size.exact is not None for size in sizes):
        return Size.fixed(FLAG_BITS + sum(size.exact or 0 for size in sizes))
    if any(size.worst_case is None for size in sizes):
        return Size()
    prefix = sum(int(elias.length(int(size.worst_case or 0) + 1)) for size in sizes if size.exact is None)
    worst = FLAG_BITS + prefix + sum(size.worst_case or 0 for size in sizes)
    if any(size.expected_upper is None for size in sizes):
        return Size(None, None, worst)
    return Size(None, FLAG_BITS + prefix + sum(size.expected_upper or 0 for size in sizes), worst)


def shared_symmetries(*operators: Operator) -> frozenset[str]:
    """Return the symmetries that all operators share."""
    return frozenset.intersection(*(operator.equivariant for operator in operators))


def joint_randomness(*operators: Operator) -> Randomness:
    """Return "shared" if a decoder needs its key, else "private" if an encoder draws, else "none"."""
    kinds = {operator.randomness for operator in operators}
    return "shared" if "shared" in kinds else "private" if "private" in kinds else "none"
