"""The wire of Sparse Dithering: scale, number of non-zeros, signs, unary levels, support."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from ..bits.bitstream import FIELDS, BitReader, flush, words, write_bits, write_fields, write_string
from ..message import CorruptMessage
from .size_bounds import SLACK, least
from .support_set import RANKED, decode_support, encode_support

SCALE_BITS = 31  # binary32 without its sign
SHORT = 32  # the longest unary level that is one field
_LARGEST = float(np.finfo(np.float32).max)


@numba.njit(cache=True, nogil=True)
def _count(levels):
    k, total = 0, 0
    for n in levels:
        k += n != 0
        total += abs(n)
    return k, total


@numba.njit(cache=True, nogil=True)
def _signs(levels, values, widths):
    """Return one field for each non-zero; written without a branch, which would be guessed wrong half of the time."""
    m = 0
    for n in levels:
        values[m], widths[m] = np.uint64(n < 0), 1
        m += n != 0
    return m


@numba.njit(cache=True, nogil=True)
def _short(levels, start, values, widths):
    """Return fields of levels from index ``start`` on, up to a long one or as many as fit: (how many, next index)."""
    m = np.int64(0)
    for i in range(start, levels.size):
        n = np.int64(abs(levels[i]))
        if n > SHORT or m == FIELDS:
            return m, i
        values[m], widths[m] = np.uint64((1 << n) - 2), n
        m += n > 0
    return m, levels.size


@numba.njit(cache=True, nogil=True)
def _unary(n, values, widths):
    """Return fields of a long level: 31 ones at a time, the last field ends with the zero."""
    m, ones = 0, n - 1
    while ones > 0 and m < FIELDS - 1:
        take = min(ones, 31)
        values[m], widths[m] = np.uint64((1 << take) - 1), take
        m, ones = m + 1, ones - take
    if ones == 0:
        values[m], widths[m] = np.uint64(0), 1
        m += 1
    return m, ones


@numba.njit(cache=True, nogil=True)
def _write(pattern, count, count_bits, levels, tail, tail_bits, out):
    state = write_bits(out, (np.uint64(0), 0, 0), pattern, SCALE_BITS)
    if count_bits > 32:
        state = write_bits(out, state, count >> 32, count_bits - 32)
        count, count_bits = count & 0xFFFFFFFF, 32
    state = write_bits(out, state, count, count_bits)
    values, widths = np.zeros(FIELDS + 1, np.uint64), np.zeros(FIELDS + 1, np.int64)
    for start in range(0, levels.size, FIELDS):
        state = write_fields(out, state, values, widths, _signs(levels[start : start + FIELDS], values, widths))
    start = 0
    while start < levels.size:
        m, start = _short(levels, start, values, widths)
        state = write_fields(out, state, values, widths, m)
        left = np.int64(abs(levels[start])) if start < levels.size and m < FIELDS else 0
        if left > SHORT:
            start += 1
            while left > 0:
                m, ones = _unary(left, values, widths)
                state = write_fields(out, state, values, widths, m)
                left = ones + (ones > 0)
    state = write_string(out, state, tail, tail_bits)
    flush(out, state)


def write(scale: float, levels: np.ndarray, base: int) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of a positive binary32 scale and signed levels; the count field holds k - base."""
    k, total = _count(levels)
    tail, tail_bits = encode_support(levels, k)
    count_bits = (levels.size - base).bit_length()
    bits = SCALE_BITS + count_bits + k + total + tail_bits
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(int(np.float32(scale).view(np.uint32)), k - base, count_bits, levels, tail, tail_bits, out)
    return out, bits


@numba.njit(cache=True, nogil=True)
def _read_levels(words, position, end, most, levels):
    """Return signs, then unary levels, of all non-zeros; returns the next position, or -1 if corrupt."""
    k = levels.size
    signs = position
    position += k
    for j in range(k):
        n, ones = 1, 32
        while ones == 32:
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            ones = 0
            while ones < 32 and w >> np.uint64(63):
                w <<= np.uint64(1)
                ones += 1
            n += ones
            position += ones
            if n > most or position >= end:
                return -1
        position += 1
        sign = (words[(signs + j) >> 5] >> np.uint32(31 - ((signs + j) & 31))) & np.uint32(1)
        levels[j] = -n if sign else n
    return position


@numba.njit(cache=True, nogil=True)
def _place(mask, levels, step, out):
    j = 0
    for i in range(mask.size):
        if mask[i]:
            out[i] = np.float32(step * levels[j])
            j += 1


def read(payload: np.ndarray, bits: int, d: int, base: int, spacing: float, most: int) -> np.ndarray:
    """Return the float32 vector scale * spacing * levels.

    Raises
    ------
    CorruptMessage
        For anything ``write`` cannot write.
    """
    out = np.zeros(d, np.float32)
    reader = BitReader(payload, bits)
    scale = float(np.uint32(reader.read(SCALE_BITS)).view(np.float32))
    if not math.isfinite(scale):
        raise CorruptMessage(f"the scale must be finite; got {scale}")
    if scale == 0:
        reader.finish()
        return out
    k = reader.read((d - base).bit_length()) + base
    if k > d:
        raise CorruptMessage(f"{k} coordinates of {d} are said to be non-zero")
    if reader.remaining < 2 * k:
        raise CorruptMessage(f"{k} signs and levels take at least {2 * k} bits; {reader.remaining} remain")
    levels = np.empty(k, np.int32)
    position = _read_levels(words(payload), reader.position, bits, most, levels)
    if position < 0:
        raise CorruptMessage(f"the message does not hold {k} signs and levels of 1 .. {most}")
    mask = decode_support(payload, position, bits, d, k)
    if k and scale * spacing * float(np.abs(levels).max()) > _LARGEST:
        raise CorruptMessage("a decoded value exceeds binary32")
    _place(mask, levels, scale * spacing, out)
    return out


def ends_bits(d: int, base: int) -> int:
    """Scale, count, and the most that a support's code exceeds log2 C(d, k)."""
    return SCALE_BITS + (d - base).bit_length() + (1 if d <= RANKED else 2)


def per_coordinate(cost: Callable[[float], float], budget: float) -> float:
    """Return min over t of log2(1 + 2^(1 + M(t))) + t * budget, the worst of H(q) + q + unary bits a coordinate.

    cost(t) = M(t) = max_n (n - t e(n)) where e(n) is the energy, in squared steps, that level n >= 1 needs at least;

    Parameters
    ----------
    budget : float
        Energy a coordinate.  From log2 C(d, k) <= -k log2 p - (d - k) log2(1 - p) for every p, with the p that
        equalises the two cases, and one Lagrange multiplier.
    """
    return SLACK * least(lambda log: _softplus(1 + cost(math.exp(log))) + math.exp(log) * budget, -30.0, 10.0, 80)


def _softplus(bits: float) -> float:
    return float(np.logaddexp2(0.0, bits))
