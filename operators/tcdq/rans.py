"""Range coding by asymmetric numeral systems (Duda 2013), single and in 16 interleaved states, compiled.

A coordinate is written as: its symbol's index; after the escape, a 6-bit field (sign, length L) and the L low
bits of the excess in pieces of at most 8; then the ``low`` bits that were split off the symbol.  Fields without
a model are coded at their width in bits.  The encoder runs backwards, so that the decoder runs forwards.
"""

from __future__ import annotations

import numba
import numpy as np

from .dither import HALF_BITS, PHASE, mix
from .trellis import LANES

SHORT_BASE, SHORT_P = np.uint64(1 << 31), 16
LONG_BASE, LONG_P = np.uint64(1 << 16), 12
PIECE = 8
FIELD = 6
MOST_LENGTH = 26  # of an excess
ROOM = 12  # words that one coordinate can need at most
RECIPROCAL = 44


@numba.njit(inline="always")
def split(symbol, low):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(k, phase, low part) of a packed symbol: its ``low`` last bits, with their offset, are set apart."""
    k, phase = symbol >> 6, symbol & 63
    if low == 0:
        return k, phase, 0
    k += 1 << (low - 1)
    return k >> low, (phase + 32) >> low, k & ((1 << low) - 1)


@numba.njit(inline="always")
def magnitude(k, phase):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """|n - u| in 1/64 spacings, rounded down."""
    return 64 * k - phase - 1 if k > 0 else phase - 64 * k


@numba.njit(cache=True, nogil=True)
def classify(symbols, low, thresholds, levels, classes, counts, squares):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Class of every block, and per class the histogram of levels of magnitude and the sum of squares."""
    past = 0
    for block in range(classes.size):
        c = np.searchsorted(thresholds, past, side="right")
        classes[block] = c
        past, square = 0, 0.0
        for i in range(16 * block, min(16 * block + 16, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j = magnitude(k, phase)
            past += j
            square += (j + 0.5) * (j + 0.5)
            more = 0
            while j >= levels.size:
                j >>= 1
                more += 8
            counts[c, levels[j] + more] += 1
        squares[c] += square


@numba.njit(inline="always")
def _excess(k, widest):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(excess >= 1, its length, sign bit) of a symbol outside 1 - K .. K."""
    negative = k <= 0
    e = 1 - widest - k if negative else k - widest
    length = 0
    while e >> (length + 1):
        length += 1
    return e, length, 32 if negative else 0


@numba.njit(inline="always")
def _put_short(state, out, at, start, frequency, precision):  # type: ignore[no-untyped-def]  # pragma: no cover
    f = np.uint64(frequency)
    if state >= f << np.uint64(63 - precision):
        at -= 1
        out[at] = np.uint32(state & np.uint64(0xFFFFFFFF))
        state >>= np.uint64(32)
    q = state // f
    return (q << np.uint64(precision)) + (state - q * f) + np.uint64(start), at


@numba.njit(inline="always")
def _put_long(state, out, at, start, frequency, reciprocal):  # type: ignore[no-untyped-def]  # pragma: no cover
    f = np.uint64(frequency)
    if state >= f << np.uint64(32 - LONG_P):
        at -= 1
        out[at] = np.uint16(state & np.uint64(0xFFFF))
        state >>= np.uint64(16)
    q = (state * reciprocal) >> np.uint64(RECIPROCAL)
    return state + q * (np.uint64(1 << LONG_P) - f) + np.uint64(start), at


@numba.njit(cache=True, nogil=True)
def encode_short(symbols, low, groups, widest, offset, frequency, start, shift, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Words backwards from the end of ``out`` (uint32); returns (state, first word), or -1 if they do not fit."""
    state, at = SHORT_BASE, out.size
    for i in range(symbols.size - 1, -1, -1):
        if at < ROOM:
            return state, -1
        k, phase, rest = split(symbols[i], low)
        if low:
            state, at = _put_short(state, out, at, rest << (SHORT_P - low), 1 << (SHORT_P - low), SHORT_P)
        g = groups[i >> 4]
        top = widest[g]
        index = k + top - 1
        if index < 0 or index >= 2 * top:
            e, length, sign = _excess(k, top)
            done = 0
            while done < length:
                width = min(PIECE, length - done)
                piece = (e >> done) & ((1 << width) - 1)
                state, at = _put_short(state, out, at, piece << (SHORT_P - width), 1 << (SHORT_P - width), SHORT_P)
                done += width
            field = sign | length
            state, at = _put_short(state, out, at, field << (SHORT_P - FIELD), 1 << (SHORT_P - FIELD), SHORT_P)
            index = 2 * top
        entry = offset[g] + (phase >> shift) * (2 * top + 1) + index
        state, at = _put_short(state, out, at, start[entry], frequency[entry], SHORT_P)
    return state, at


@numba.njit(cache=True, nogil=True)
def encode_long(symbols, low, groups, widest, offset, frequency, start, reciprocal, shift, out, states):  # type: ignore[no-untyped-def]  # pragma: no cover
    """As ``encode_short`` with coordinate i in state i mod 16 (``states``, uint64); returns the first word or -1."""
    at, d = out.size, symbols.size
    states[:] = LONG_BASE
    powers = np.array([np.uint64(1) << np.uint64(RECIPROCAL - LONG_P + w) for w in range(LONG_P)])
    for t in range((d - 1) >> 4, -1, -1):
        if at < LANES * ROOM:
            return -1
        g = groups[t]
        top, base = widest[g], offset[g]
        size = 2 * top + 1
        for lane in range(min(LANES, d - 16 * t) - 1, -1, -1):
            state = states[lane]
            k, phase, rest = split(symbols[16 * t + lane], low)
            if low:
                width = LONG_P - low
                state, at = _put_long(state, out, at, rest << width, 1 << width, powers[low])
            index = k + top - 1
            if index < 0 or index >= 2 * top:
                e, length, sign = _excess(k, top)
                done = 0
                while done < length:
                    width = min(PIECE, length - done)
                    piece = (e >> done) & ((1 << width) - 1)
                    done += width
                    state, at = _put_long(
                        state, out, at, piece << (LONG_P - width), 1 << (LONG_P - width), powers[width]
                    )
                field = sign | length
                state, at = _put_long(state, out, at, field << (LONG_P - FIELD), 1 << (LONG_P - FIELD), powers[FIELD])
                index = 2 * top
            entry = base + (phase >> shift) * size + index
            states[lane], at = _put_long(state, out, at, start[entry], frequency[entry], reciprocal[entry])
    return at


@numba.njit(inline="always")
def _take_short(state, words, at, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A field of ``width`` bits; the position runs on past the end, where words are zero."""
    p = np.uint64(SHORT_P)
    shift = np.uint64(SHORT_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    if state < SHORT_BASE:
        state = (state << np.uint64(32)) | np.uint64(words[min(at, words.size - 1)])
        at += 1
    return np.int64(value), state, at


@numba.njit(inline="always")
def _take_long(state, words, at, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    p = np.uint64(LONG_P)
    shift = np.uint64(LONG_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    if state < LONG_BASE:
        state = (state << np.uint64(16)) | np.uint64(words[min(at, words.size - 1)])
        at += 1
    return np.int64(value), state, at


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

    words : uint32, ended by one spare zero.  dither : (first, second, shift, offset, lanes).
    """
    first, second, bits, centre, lanes = dither
    trellis = np.zeros(lanes, np.int64)
    at, past, g = 0, 0, starts[0]
    mask = np.uint64((1 << SHORT_P) - 1)
    for i in range(out.size):
        if i & 15 == 0:
            g = starts[np.searchsorted(thresholds, past, side="right")]
            past = 0
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
            state = (state << np.uint64(32)) | np.uint64(words[min(at, words.size - 1)])
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
        past += magnitude(k, phase)
        if low:
            rest, state, at = _take_short(state, words, at, low)
            k = (k << low) + rest - (1 << (low - 1))
        if at >= words.size:
            return -1
        trellis[lane] = after[2 * s + ((k + q) & 1)]
        out[i] = _value(k, w, step, scale)
    return at if state == SHORT_BASE else -1


@numba.njit(cache=True, nogil=True)
def decode_long(words, states, low, starts, thresholds, widest, table, after, dither, step, scale, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """As ``decode_short`` for 16 interleaved states (uint64), with the symbols' table of every group."""
    first, second, bits, centre = dither
    trellis = np.zeros(LANES, np.int64)
    at, past, d = 0, 0, out.size
    many = widest.size > 1
    for t in range((d + 15) >> 4):
        g = starts[np.searchsorted(thresholds, past, side="right")] if many else 0
        past = 0
        top, base = widest[g], g << (4 + LONG_P)
        for lane in range(min(LANES, d - 16 * t)):
            i = 16 * t + lane
            s, state = trellis[lane], states[lane]
            q, w, fine = _phase(i, first, second, (bits, centre), s & 1)
            phase = fine if low == 0 else (fine + 32) >> low
            entry = np.int64(table[base + ((phase >> 2) << LONG_P) + np.int64(state & np.uint64((1 << LONG_P) - 1))])
            state = np.uint64(entry >> 20) * (state >> np.uint64(LONG_P)) + np.uint64((entry >> 8) & 4095)
            if state < LONG_BASE:
                state = (state << np.uint64(16)) | np.uint64(words[at])
                at += 1
                if at >= words.size:
                    return -1
            index = entry & 255
            k = index + 1 - top
            if index == 2 * top:
                field, state, at = _take_long(state, words, at, FIELD)
                e, left = 1, field & 31
                if left > MOST_LENGTH:
                    return -1
                while left > 0:
                    width = PIECE if left % PIECE == 0 else left % PIECE
                    piece, state, at = _take_long(state, words, at, width)
                    e = (e << width) | piece
                    left -= width
                k = 1 - top - e if field & 32 else top + e
                if at >= words.size:
                    return -1
            if many:
                past += magnitude(k, phase)
            if low:
                rest, state, at = _take_long(state, words, at, low)
                k = (k << low) + rest - (1 << (low - 1))
                if at >= words.size:
                    return -1
            trellis[lane] = after[2 * s + ((k + q) & 1)]
            states[lane] = state
            out[i] = _value(k, w, step, scale)
    for lane in range(LANES):
        if states[lane] != LONG_BASE:
            return -1
    return at
