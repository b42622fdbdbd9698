"""The decoders of ``rans``: symbols, parities, next states and values in one pass, forwards."""

from __future__ import annotations

import numba
import numpy as np

from .classes import fade, follow
from .dither import HALF_BITS, PHASE, mix
from .rans import FIELD, LONG_BASE, LONG_P, MOST_LENGTH, PIECE, ROOM, SHORT_BASE, SHORT_P, magnitude
from .trellis import LANES


@numba.njit(inline="always")
def _take_short(state, words, at, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A field of ``width`` bits."""
    p = np.uint64(SHORT_P)
    shift = np.uint64(SHORT_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    if state < SHORT_BASE:
        state = (state << np.uint64(32)) | np.uint64(words[at])
        at += 1
    return np.int64(value), state, at


@numba.njit(inline="always")
def _refill(state, words, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Without a branch: the next word is always read, and used only if the state is too small."""
    short = np.uint64(state < LONG_BASE)
    state = (state << (short << np.uint64(4))) | (np.uint64(words[np.uint64(at)]) & (np.uint64(0) - short))
    return state, at + np.int64(short)


@numba.njit(inline="always")
def _take_long(state, words, at, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    p = np.uint64(LONG_P)
    shift = np.uint64(LONG_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    state, at = _refill(state, words, at)
    return np.int64(value), state, at


@numba.njit(cache=True, nogil=True)
def _take_escape(state, words, at, widest):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(symbol, state, position); symbol 0 for a length that nobody writes."""
    field, state, at = _take_long(state, words, at, FIELD)
    e, left = 1, field & 31
    if left > MOST_LENGTH:
        return 0, state, at
    while left > 0:
        width = PIECE if left % PIECE == 0 else left % PIECE
        piece, state, at = _take_long(state, words, at, width)
        e = (e << width) | piece
        left -= width
    return (1 - widest - e if field & 32 else widest + e), state, at


@numba.njit(inline="always")
def _phase(i, first, second, shape, parity):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(q, w, phase) of a coordinate: what the dither and the forced parity say."""
    u = np.int64(2 * np.int64(mix(i, first, second) >> np.uint32(shape[0])) + 1 - shape[1])
    a = u - (parity << HALF_BITS)
    w = a & PHASE
    return a >> 24, w, w >> 18


@numba.njit(inline="always")
def _value(k, w, step, scale):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return (np.float32(k) - np.float32(w) * np.float32(2.0**-24)) * step * scale


@numba.njit(cache=True, nogil=True)
def decode_short(  # type: ignore[no-untyped-def]
    words, state, low, starts, thresholds, widest, offset, frequency, start, shift, after, dither, step, scale, out
):  # pragma: no cover - compiled
    """Fill ``out``; returns the number of words read, or -1 for a stream that nobody wrote.

    words : uint32, followed by ROOM spare ones.  dither : (first, second, shift, offset, lanes).
    """
    first, second, bits, centre, lanes = dither
    trellis = np.zeros(lanes, np.int64)
    at, past, c = 0, 0, 0
    mask = np.uint64((1 << SHORT_P) - 1)
    for i in range(out.size):
        c = follow(c, past, thresholds)
        g = starts[c]
        lane = i % lanes
        s = trellis[lane]
        q, w, fine = _phase(i, first, second, (bits, centre), s & 1)
        phase = fine if low == 0 else (fine + 32) >> low
        top = widest[g]
        size = 2 * top + 1
        row = offset[g] + (phase >> shift) * size
        slot = state & mask
        below, above = 0, size
        while above - below > 1:
            middle = (below + above) >> 1
            if np.uint64(start[row + middle]) <= slot:
                below = middle
            else:
                above = middle
        entry = row + below
        state = np.uint64(frequency[entry]) * (state >> np.uint64(SHORT_P)) + slot - np.uint64(start[entry])
        if state < SHORT_BASE:
            state = (state << np.uint64(32)) | np.uint64(words[at])
            at += 1
        k = below + 1 - top
        if below == 2 * top:
            field, state, at = _take_short(state, words, at, FIELD)
            e, left = 1, field & 31
            if left > MOST_LENGTH:
                return -1
            while left > 0:
                width = PIECE if left % PIECE == 0 else left % PIECE
                piece, state, at = _take_short(state, words, at, width)
                e = (e << width) | piece
                left -= width
            k = 1 - top - e if field & 32 else top + e
        past = fade(past, magnitude(k, phase), 1)
        if low:
            rest, state, at = _take_short(state, words, at, low)
            k = (k << low) + rest - (1 << (low - 1))
        if at > words.size - ROOM:
            return -1
        trellis[lane] = after[2 * s + ((k + q) & 1)]
        out[i] = _value(k, w, step, scale)
    return at if state == SHORT_BASE else -1


STATE, NEXT, TRELLIS, SHIFTED, ENTRY = (np.uint64(LANES * i) for i in range(5))  # places of the lanes in one array


@numba.njit(inline="always")
def _slots(work, row, base, first, second, bits, centre):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Dither less parity, and the place of every lane's entry in the table, of a row without low parts."""
    for lane in range(LANES):
        i = np.uint64(lane)
        u = np.int32(2 * np.int32(mix(row + np.uint32(lane), first, second) >> bits) + 1 - centre)
        a = np.int32(u - np.int32((work[TRELLIS + i] & np.uint32(1)) << np.uint32(HALF_BITS)))
        work[SHIFTED + i] = np.uint32(a)
        bin16 = np.uint32(a & PHASE) >> np.uint32(20)
        slot = np.uint32(work[STATE + i] & np.uint32((1 << LONG_P) - 1))
        work[ENTRY + i] = np.uint32(base + np.uint32(np.uint32(bin16 << np.uint32(LONG_P)) + slot))


@numba.njit(inline="always")
def _refills(work, words, at, table, escape):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(position, whether no lane escapes): entries and next states; without a branch."""
    outside = False
    for lane in range(LANES):
        i = np.uint64(lane)
        entry, state = table[work[ENTRY + i]], work[STATE + i]
        work[ENTRY + i] = entry
        outside |= entry & np.uint32(255) == escape
        state = np.uint32(np.uint32(np.uint32(entry >> np.uint32(20)) * np.uint32(state >> np.uint32(LONG_P))))
        state = np.uint32(state + np.uint32(np.uint32(entry >> np.uint32(8)) & np.uint32(4095)))
        short = np.uint64(state < np.uint32(1 << 16))
        refilled = np.uint32(np.uint32(state << np.uint32(16)) | np.uint32(words[at]))
        work[NEXT + i] = refilled if short else state
        at += short
    return np.int64(at), not outside


@numba.njit(inline="always")
def _values(work, row, top, a, b, step, scale, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Commit a row: values, next states of coder and trellis."""
    for lane in range(LANES):
        i = np.uint64(lane)
        shifted, s = np.int32(work[SHIFTED + i]), work[TRELLIS + i]
        k = np.int32(np.int32(work[ENTRY + i] & np.uint32(255)) + top)
        free = np.uint32(np.int32(k + (shifted >> np.int32(24))) & np.int32(1))
        work[TRELLIS + i] = np.uint32(
            np.uint32(s >> np.uint32(1)) ^ np.uint32(np.uint32(s & np.uint32(1)) * a) ^ np.uint32(free * b)
        )
        work[STATE + i] = work[NEXT + i]
        w = np.int32(shifted & np.int32(PHASE))
        out[row + i] = (np.float32(k) - np.float32(w) * np.float32(2.0**-24)) * step * scale


@numba.njit(inline="always")
def _magnitudes(work, top):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum of magnitudes of a row without low parts."""
    total = np.int32(0)
    for lane in range(LANES):
        i = np.uint64(lane)
        k = np.int32(np.int32(work[ENTRY + i] & np.uint32(255)) + top)
        at = np.int32(np.int32(64 * k) - np.int32((work[SHIFTED + i] & np.uint32(PHASE)) >> np.uint32(18)))
        total += np.int32(at - 1 if k > 0 else -at)
    return total


@numba.njit(cache=True, nogil=True)
def _any_row(work, row, words, at, low, top, base, table, a, b, dither, step, scale, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """(position, sum of magnitudes) of any row, lane by lane; position -1 for an escape that nobody writes."""
    first, second, bits, centre = dither
    past = 0
    for lane in range(min(LANES, out.size - row)):
        i = np.uint64(lane)
        s, state = np.int64(work[TRELLIS + i]), np.uint64(work[STATE + i])
        q, w, fine = _phase(np.uint32(row + lane), first, second, (bits, centre), s & 1)
        phase = fine if low == 0 else (fine + 32) >> low
        slot = np.int64(state & np.uint64((1 << LONG_P) - 1))
        entry = np.int64(table[np.uint64(base + ((phase >> 2) << LONG_P) + slot)])
        state = np.uint64(entry >> 20) * (state >> np.uint64(LONG_P)) + np.uint64((entry >> 8) & 4095)
        state, at = _refill(state, words, at)
        index = entry & 255
        k = index + 1 - top
        if index == 2 * top:
            k, state, at = _take_escape(state, words, at, top)
            if k == 0:
                return -1, 0
        past += magnitude(k, phase)
        if low:
            rest, state, at = _take_long(state, words, at, low)
            k = (k << low) + rest - (1 << (low - 1))
        work[TRELLIS + i] = np.uint32((s >> 1) ^ (s & 1) * a ^ ((k + q) & 1) * b)
        work[STATE + i] = np.uint32(state)
        out[row + lane] = _value(k, w, step, scale)
    return at, past


@numba.njit(cache=True, nogil=True)
def decode_long(words, states, low, starts, thresholds, widest, table, a, b, dither, step, scale, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """As ``decode_short`` for 16 interleaved states, with the symbols' table of every group.

    words : uint16, followed by 16 ROOM spare ones.  a, b : of the trellis.
    Rows without low parts and escapes: vector loops around the one that reads words.
    """
    first, second, bits, centre = dither
    work = np.zeros(5 * LANES, np.uint32)
    for lane in range(LANES):
        work[lane] = states[lane]
    at, past, c, d = 0, 0, 0, out.size
    many, count = widest.size > 1, words.size - LANES * ROOM
    for row in range(0, d, LANES):
        c = follow(c, past, thresholds)
        g = starts[c] if many else 0
        top, base = widest[g], g << (4 + LONG_P)
        plain = low == 0 and row + LANES <= d
        if plain:
            _slots(work, np.uint32(row), np.uint32(base), first, second, np.uint32(bits), np.int32(centre))
            after, plain = _refills(work, words, np.uint64(at), table, np.uint32(2 * top))
        if plain:
            at = after
            if many:
                past = _magnitudes(work, np.int32(1 - top))
            _values(work, np.uint64(row), np.int32(1 - top), np.uint32(a), np.uint32(b), step, scale, out)
        else:
            at, past = _any_row(work, row, words, at, low, top, base, table, a, b, dither, step, scale, out)
        if at < 0 or at > count:
            return -1
    for lane in range(LANES):
        if work[lane] != LONG_BASE:
            return -1
    return at
