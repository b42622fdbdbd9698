"""Dither, segments and trellis of TCDQ, and the constants that its loops receive."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ..compilation import jit, simd
from ..key import Key
from ..random import bits32

# Shared dither: one 32-bit hash per coordinate, from two words of the key's stream.
#
# The hash is a bijection of the index for each key (multiplication by an odd constant, xor of shifts: the
# finaliser of MurmurHash3 after a Weyl step, with the second key word inside).  Its top bits are the dither: an odd
# multiple of 2^-24 v, so that the dither's law is symmetric and no float is ever rounded.

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


# A long vector is coded in segments, each with trellises and coder states of its own.
#
# So the encoder's working memory does not grow with the vector and stays in the cache, and segments can be worked on
# side by side.  Norm, model and dither are common to all.

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


# The codes: Ungerboeck's rate-1/2 trellises on the integers modulo 4, and their mean squared error.
#
# Write n mod 4 = 2 z1 + z0.  State s forces the parity z0 = s & 1 and the free bit z1 drives the state, ::
#
#     s' = (s >> 1) xor (s & 1) A xor z1 B,
#
# from state 0 on, with a free end.  The integer sequences so admitted form a set that contains (4 Z)^d and has
# index 2^d in Z^d.  With one state there is no trellis: all integers are admitted.
# (Parity checks: Ungerboeck 1982, Table I; the one of 256 states is that of least error among all 16 256.)

LANES = simd.LANES  # trellises side by side in a segment of a long vector; coordinate i belongs to lane i mod 16
LANES_FROM = 1024  # from this d on there are 16 lanes, hence at least 64 coordinates in each
FINE_METRICS = 64  # the most states with metrics of binary32
TRELLIS_FROM = 64  # below this d the integers themselves are the code


@dataclass(frozen=True)
class Trellis:
    """One code.

    Parameters
    ----------
    states : int
        S.
    a : int
        The feedback A of the state recursion.
    b : int
        The drive B of the state recursion.
    error : float
        mean squared error per coordinate, for a uniform point and d -> infinity.
    ends : float
        What the two ends of one trellis add to the sum of squared errors.
    """

    states: int
    a: int
    b: int
    error: float
    ends: float

    @property
    def spacing(self) -> int:
        """Distance v of neighbouring admitted integers once the state is known."""
        return 1 if self.states == 1 else 2

    @property
    def coarse(self) -> bool:
        """Whether its path metrics are bytes (see ``coarse``); binary32 otherwise."""
        return self.states > FINE_METRICS

    def following(self, state: int, z1: int) -> int:
        """Return the next state."""
        return (state >> 1) ^ (state & 1) * self.a ^ z1 * self.b

    @cached_property
    def after(self) -> np.ndarray:
        """Next state after[2 s + z1], shape (2 S,), int32."""
        return np.array([self.following(s, z) for s in range(self.states) for z in (0, 1)], np.int32)

    @cached_property
    def before(self) -> np.ndarray:
        """before[2 s' + bit] = 4 s + n mod 4 for the two branches that enter s', shape (2 S,), int32."""
        entering: list[list[int]] = [[] for _ in range(self.states)]
        for s in range(self.states):
            for z in (0, 1):
                entering[self.following(s, z)].append(4 * s + 2 * z + (s & 1))
        return np.array(entering, np.int32).reshape(-1)

    def mean_error(self, d: int, segment: int = SEGMENT) -> float:
        """Return c_S(d): mean squared error per coordinate at d coordinates, its ends included."""
        return self.error + self.ends * lanes(d) * count(d, segment) / d


# error and ends: means over uniform points, by simulation to 2e-5 and 6e-3; one state: exact
CODES = {
    1: Trellis(1, 0, 0, 1 / 12, 0.0),
    4: Trellis(4, 2, 1, 0.26502, 0.304),
    8: Trellis(8, 5, 2, 0.25962, 0.443),
    64: Trellis(64, 33, 10, 0.24964, 0.77),
    128: Trellis(128, 123, 49, 0.24663, 1.19),
    256: Trellis(256, 155, 81, 0.24479, 1.26),
}


@lru_cache(maxsize=256)
def code(states: int, d: int) -> Trellis:
    """Return the code in use at d coordinates: below 64 the ends of a trellis weigh too much and the integers serve."""
    return CODES[states if d >= TRELLIS_FROM else 1]


def lanes(d: int) -> int:
    """Return how many trellises run side by side in a segment."""
    return LANES if d >= LANES_FROM else 1


# What the compiled loops know of a segment, one record each: tuples with names, as fast in numba as arguments.
#
# A loop unpacks the arrays that it reads: taken out of a record in its body, each would be counted every time.


class Grid(NamedTuple):
    """The encoder's dithered integers: y = x scale inverse + u.

    Parameters
    ----------
    scale : float32
        Power of two that brings the norm near 1.
    inverse : float32
        Reciprocal of the step after it.
    first, second : uint32
        Seeds of the dither.
    """

    scale: np.float32
    inverse: np.float32
    first: np.uint32
    second: np.uint32


class ShortTables(NamedTuple):
    """What is written of each symbol, short format; see ``tables.Tables``.

    Parameters
    ----------
    raw_bits : int
        Last bits of each symbol, sent as they are.
    shift : int
        Turns a phase into a bin.
    widest, offset : ndarray of int64, shape (groups,)
        Largest coded symbol and first entry of each group.
    frequency, start : ndarray of uint32
        Width of each entry's interval, and where it begins.
    """

    raw_bits: int
    shift: int
    widest: np.ndarray
    offset: np.ndarray
    frequency: np.ndarray
    start: np.ndarray


class LongTables(NamedTuple):
    """The same for the encoder of the long format.

    Parameters
    ----------
    raw_bits, widest, offset
        As in ``ShortTables``; but within a group the bins of one symbol follow one another.
    pairs : ndarray of uint32
        start << 16 | frequency of each entry.
    reciprocal : ndarray of uint32
        2^32 over the frequency, rounded down.
    """

    raw_bits: int
    widest: np.ndarray
    offset: np.ndarray
    pairs: np.ndarray
    reciprocal: np.ndarray


class Contexts(NamedTuple):
    """How past magnitudes choose a mixture.

    Parameters
    ----------
    starts : ndarray of int64, shape (CLASSES,)
        Mixture of each class.
    thresholds : ndarray of int64, shape (CLASSES - 1,)
        Least energy of each class but the first.
    """

    starts: np.ndarray
    thresholds: np.ndarray


class Lattice(NamedTuple):
    """The decoder's side of the grid: a coordinate is (k - w) step scale.

    Parameters
    ----------
    step, scale : float32
        Spacing of the symbols, and the power of two left over.
    first, second : uint32
        Seeds of the dither.
    shift, centre : int
        The dither is 2 (hash >> shift) + 1 - centre units.
    """

    step: np.float32
    scale: np.float32
    first: np.uint32
    second: np.uint32
    shift: int
    centre: int


class ShortDecoder(NamedTuple):
    """What the decoder of the short format knows before the words.

    Parameters
    ----------
    tables : ShortTables
        By which symbols are coded.
    contexts : Contexts
        Which mixture codes a coordinate.
    lattice : Lattice
        How symbols become values.
    after : ndarray of int32, shape (2 states,)
        Next state of the trellis.
    lanes : int
        Trellises side by side.
    """

    tables: ShortTables
    contexts: Contexts
    lattice: Lattice
    after: np.ndarray
    lanes: int


class LongDecoder(NamedTuple):
    """What the decoder of the long format knows before the words.

    Parameters
    ----------
    raw_bits : int
        As in ``ShortTables``.
    widest : ndarray of int64, shape (groups,)
        Largest coded symbol of each group.
    table : ndarray of uint32
        See ``tables.lookup``.
    contexts : Contexts
        Which mixture codes a coordinate.
    lattice : Lattice
        How symbols become values.
    a, b : int
        Feedback and drive of the trellis.
    """

    raw_bits: int
    widest: np.ndarray
    table: np.ndarray
    contexts: Contexts
    lattice: Lattice
    a: int
    b: int
