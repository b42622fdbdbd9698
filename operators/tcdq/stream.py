"""What the compiled loops know of a segment, one record each: tuples with names, as fast in numba as arguments.

A loop unpacks the arrays that it reads: taken out of a record in its body, each would be counted every time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
