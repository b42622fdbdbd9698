"""Shared dither: one 32-bit hash per coordinate, from two words of the key's stream.

The hash is a bijection of the index for each key (multiplication by an odd constant, xor of shifts: the
finaliser of MurmurHash3 after a Weyl step, with the second key word inside).  Its top bits are the dither: an odd
multiple of 2^-24 v, so that the dither's law is symmetric and no float is ever rounded.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from ..key import Key
from ..random import bits32

MOST = 1 << 32  # largest d: indices are distinct 32-bit numbers
UNIT = 1 << 24  # dither and phase are counted in v / UNIT
PHASE = UNIT - 1
WEYL = 0x9E3779B1
HALF_BITS = 23  # parity 1 moves the lattice by v/2 = 2^23 units


def seeds(key: Key) -> tuple[np.uint32, np.uint32]:
    """Return the two key words of the hash."""
    first, second = bits32(key, 2)
    return first, second


@jit(inline="always")
def mix(index, first, second):
    """Return the hash of one index: every product and sum wrapped to 32 bits."""
    h = np.uint32(np.uint32(np.uint32(index) * np.uint32(WEYL)) + first)
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(np.uint32(h * np.uint32(0x85EBCA6B)) ^ second)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


def shape(spacing: int) -> tuple[int, int]:
    """Return (shift, offset): the dither is 2 (hash >> shift) + 1 - offset units, uniform on a cell around 0.

    The cell is two spacings wide for a trellis (4 = 2 v), one for the integers (1 = v).
    """
    return (8, UNIT) if spacing == 2 else (9, UNIT >> 1)


@jit
def _hashes(first, second, out):
    for i in range(out.size):
        out[i] = mix(i, first, second)


def hashes(key: Key, d: int) -> np.ndarray:
    """Return the hashes of indices 0 .. d - 1: shape (d,), uint32, all different."""
    out = np.empty(d, np.uint32)
    _hashes(*seeds(key), out)
    return out
