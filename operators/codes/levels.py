"""Signed levels in Elias omega code, in buckets with a norm each: dense, sparse and flag form.

dense : omega(level + 1) of every coordinate and, if the level is not 0, a sign.
flag : one bit that tells whether the level is not 0, then the sign and omega(level).
sparse : per non-zero level omega(gap), the sign and omega(level), ended by the gap to the end of the bucket.
A bucket of norm 0 consists of its norm.
"""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np

from ..bitstream import FIELDS, flush, put, put_many
from ..sizing import least, mean_cost, worst_cost
from . import elias

NORM_BITS = 32
MOST_LEVELS = 1 << 15  # a level's code, its sign and its flag then fit 32 bits
_DENSE, _SPARSE, _FLAG = 0, 1, 2  # also the bits before a level
CODES = {"dense": _DENSE, "sparse": _SPARSE, "flag": _FLAG}
_INFINITY = 0x7F800000  # binary32 pattern


@numba.njit(cache=True, nogil=True)
def count_bits(levels, patterns, step, code, lengths):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bits of all buckets."""
    total = NORM_BITS * patterns.size
    for b in range(patterns.size):
        if patterns[b] == 0:
            continue
        start, stop = b * step, min((b + 1) * step, levels.size)
        last = start - 1
        for i in range(start, stop):
            n = abs(levels[i])
            if code == _DENSE:
                total += lengths[n + 1] + (n > 0)
            elif n > 0:
                total += 1 + lengths[n]
                if code == _SPARSE:
                    gap = i - last
                    total += lengths[gap] if gap < lengths.size else elias.length(gap)
                    last = i
        if code == _FLAG:
            total += stop - start
        elif code == _SPARSE:
            total += elias.length(stop - last)
    return total


@numba.njit(cache=True, nogil=True)
def _dense(levels, codes, lengths, values, widths):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for i in range(levels.size):
        n = abs(levels[i])
        signed = np.uint64(n > 0)
        values[i] = (codes[n + 1] << signed) | np.uint64(levels[i] < 0)
        widths[i] = lengths[n + 1] + (n > 0)
    return levels.size


@numba.njit(cache=True, nogil=True)
def _flag(levels, codes, lengths, values, widths):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for i in range(levels.size):
        n = abs(levels[i])
        values[i], widths[i] = np.uint64(0), 1
        if n > 0:
            values[i] = ((np.uint64(2) | np.uint64(levels[i] < 0)) << np.uint64(lengths[n])) | codes[n]
            widths[i] = lengths[n] + 2
    return levels.size


@numba.njit(cache=True, nogil=True)
def _gap(gap, codes, lengths, values, widths, m):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fields of one gap, whose code may have up to 64 bits, from index m; returns the next index."""
    if gap < codes.size:
        values[m], widths[m] = codes[gap], lengths[gap]
        return m + 1
    value, width = elias.build(gap)
    values[m], widths[m] = value >> np.uint64(32), max(width - 32, 0)
    values[m + 1], widths[m + 1] = value & np.uint64(0xFFFFFFFF), min(width, 32)
    return m + 2


@numba.njit(cache=True, nogil=True)
def _sparse(levels, start, last, codes, lengths, values, widths):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Fields of a piece that begins at ``start`` of its bucket; returns (how many, last non-zero position)."""
    m = 0
    for i in range(levels.size):
        n = abs(levels[i])
        if n > 0:
            m = _gap(start + i - last, codes, lengths, values, widths, m)
            values[m] = (np.uint64(levels[i] < 0) << np.uint64(lengths[n])) | codes[n]
            widths[m] = lengths[n] + 1
            m, last = m + 1, start + i
    return m, last


@numba.njit(cache=True, nogil=True)
def write(levels, patterns, step, code, codes, lengths, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Fill ``out``, which has exactly the room that ``count_bits`` says.

    levels : int32, shape (d,).  patterns : binary32 patterns of the norms, one for each ``step`` coordinates.
    """
    state = (np.uint64(0), 0, 0)
    values, widths = np.zeros(3 * FIELDS, np.uint64), np.zeros(3 * FIELDS, np.int64)
    for b in range(patterns.size):
        state = put(out, state, patterns[b], NORM_BITS)
        if patterns[b] == 0:
            continue
        begin, stop, last = b * step, min((b + 1) * step, levels.size), -1
        for start in range(begin, stop, FIELDS):
            piece = levels[start : min(start + FIELDS, stop)]
            if code == _DENSE:
                m = _dense(piece, codes, lengths, values, widths)
            elif code == _FLAG:
                m = _flag(piece, codes, lengths, values, widths)
            else:
                m, last = _sparse(piece, start - begin, last, codes, lengths, values, widths)
            state = put_many(out, state, values, widths, m)
        if code == _SPARSE:
            m = _gap(stop - begin - last, codes, lengths, values, widths, 0)
            state = put_many(out, state, values, widths, m)
    flush(out, state)


@numba.njit(cache=True, nogil=True)
def _read_bucket(words, position, bits, code, step, most, table, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Fill ``out`` (zeroed) with step times the signed levels; returns (next position, largest level).

    The position is -1 for a stream that no encoder has written.  A level with its flag and sign has at most 33
    bits, a gap at most 56.
    """
    i, top = 0, np.int64(0)
    while True:
        if code == _SPARSE:
            at, shift = position >> 5, np.uint64(position & 31)
            w = ((np.uint64(words[at]) << np.uint64(32)) | np.uint64(words[at + 1])) << shift
            w |= (np.uint64(words[at + 2]) << shift) >> np.uint64(32)
            gap, used = elias.parse(w)
            i += gap
            if used == 0 or i > out.size + 1 or position + used > bits:
                return -1, 0
            position += used
            if i == out.size + 1:
                return position, top
        elif i == out.size:
            return position, top
        else:
            i += 1
        at = position >> 5
        w = ((np.uint64(words[at]) << np.uint64(32)) | np.uint64(words[at + 1])) << np.uint64(position & 31)
        if code == _FLAG and not w >> np.uint64(63):
            position += 1
            if position > bits:
                return -1, 0
            continue
        head = np.uint64(code)  # bits before the level: none, the sign, the flag and the sign
        found = np.int64(table[(w << head) >> np.uint64(64 - elias.PREFIX)])
        n, used = (found >> 8, found & 255) if found else elias.parse(w << head)
        if used == 0:
            return -1, 0
        if code == _DENSE:
            n -= 1
            negative = (w >> np.uint64(63 - used)) & np.uint64(1) if n > 0 else np.uint64(0)
            used += n > 0
        else:
            negative = (w >> (np.uint64(64) - head)) & np.uint64(1)
            used += code
        position += used
        if n > most or position > bits:
            return -1, 0
        top = max(top, n)
        if n > 0:
            value = np.float32(step * n)
            out[i - 1] = -value if negative else value


@numba.njit(cache=True, nogil=True)
def read(words, bits, code, step, levels, full, table, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """All buckets of ``step`` coordinates; returns 0, or the first coordinate of a corrupt bucket plus 1.

    full : some level must reach ``levels`` in each bucket.
    """
    position = 0
    for start in range(0, out.size, step):
        if position + NORM_BITS > bits:
            return start + 1
        at = position >> 5
        w = ((np.uint64(words[at]) << np.uint64(32)) | np.uint64(words[at + 1])) << np.uint64(position & 31)
        pattern = np.uint32(w >> np.uint64(32))
        position += NORM_BITS
        if pattern >= _INFINITY:  # also every negative number
            return start + 1
        if pattern == 0:
            continue
        scale = np.array([pattern], np.uint32).view(np.float32)[0] / levels
        part = out[start : min(start + step, out.size)]
        position, top = _read_bucket(words, position, bits, code, scale, levels, table, part)
        if position < 0 or (full and top != levels):
            return start + 1
    return 0 if position == bits else out.size + 1


@lru_cache(maxsize=32)
def tables(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Elias codes and lengths of 0 (unused) .. max(most + 1, 1023)."""
    size = max(most + 2, 1024)
    codes, lengths = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    elias.fill(codes, lengths)
    return codes, lengths


@lru_cache(maxsize=1024)
def bucket_bits(levels: int, norm: str, code: str, d: int) -> tuple[float, float]:
    """(mean, worst) limits of the bits of one bucket of d coordinates."""
    budget = float(levels) ** 2 if norm == "l2" else float(levels) ** 2 * d
    omega = elias.lengths_up_to(levels + 1)
    sign = np.arange(levels + 1).clip(0, 1)
    costs = sign + (omega if code == "dense" else np.r_[0.0, omega[:-1]]) + (code == "flag")
    if code != "sparse":
        return NORM_BITS + mean_cost(costs, budget, d), NORM_BITS + worst_cost(costs, budget, d)

    def priced(cost: object, price: float) -> float:
        paid = costs + price * sign
        return elias.gap_intercept(price, d) + cost(paid, budget, d)  # type: ignore[operator]

    top = float(elias.length(d + 1))
    mean = least(lambda price: priced(mean_cost, price), 0.0, top, 24)
    worst = least(lambda price: priced(worst_cost, price), 0.0, top, 24)
    return NORM_BITS + mean, NORM_BITS + worst
