"""Gaussian densities and tails in fixed point: integers only, so that every machine builds the same tables."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np

ONE = 30  # densities are multiples of 2^-30
RATE = 56  # rates are multiples of 2^-56
_BITS = 32
_LOG2_E = 6653256548922161245  # floor(2^62 log2 e)
TAIL_STEP = 16  # the tail is tabulated at multiples of 1/16 standard deviation
TAIL_SIZE = 128
ROOT_2PI = 2691471615  # floor(2^30 sqrt(2 pi))


@lru_cache(maxsize=1)
def _powers() -> np.ndarray:
    """Return floor(2^32 2^(-2^-i)) for i = 1 .. 32, by repeated square roots with 96 more bits."""
    value, out = 1 << 127, []
    for i in range(1, _BITS + 1):
        value = isqrt((1 << 255) if i == 1 else value << 128)
        out.append(value >> 96)
    return np.array(out, np.uint64)


def rate(numerator: int, denominator: int) -> int:
    """Return the rate of ``decay`` for exp(-(2 j + 1)^2 numerator / denominator)."""
    return numerator * _LOG2_E // (denominator << (62 - RATE))


def decay(rate: int, n: int) -> np.ndarray:
    """Return 2^30 2^(-rate 2^-56 (2 j + 1)^2) for j = 0 .. n - 1, rounded down: int64."""
    odd = 2 * np.arange(n, dtype=np.int64) + 1
    limit = (40 << RATE) // max(rate, 1)  # 2^-40 is zero here
    exponent = np.minimum(odd * odd, limit) * np.int64(rate) >> (RATE - _BITS)
    value = np.full(n, 1 << 32, np.uint64)
    for i, power in enumerate(_powers(), start=1):
        bit = (exponent >> (_BITS - i)) & 1 == 1
        value[bit] = (value[bit] * power) >> np.uint64(32)
    return (value >> (np.uint64(32 - ONE) + (exponent >> _BITS).astype(np.uint64))).astype(np.int64)


@lru_cache(maxsize=1)
def _tails() -> np.ndarray:
    values = decay(rate(1, 8 * TAIL_STEP**2), TAIL_SIZE)
    beyond = np.cumsum(values[::-1])[::-1]
    return np.append(beyond * (1 << 20) // beyond[0], 0)


def tail(sixteenths: int) -> int:
    """Return ``2^20 P(|Z| > sixteenths / 16)`` for a standard normal Z, rounded down."""
    return int(_tails()[min(sixteenths, TAIL_SIZE)])
