"""Asymmetric numeral systems (Duda 2013), single and in 16 interleaved states: the format and the encoders.

A coordinate is written as: its symbol's index; after the escape, a 6-bit field (sign, length L) and the L low
bits of the excess in pieces of at most 8; then the ``low`` bits that were split off the symbol.  Fields without
a model are coded at their width in bits.  The encoder runs backwards, so that the decoder runs forwards.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .lanes import bits, choose, count, unsigned, upper_half
from .lanes_memory import compress, gather, load, store
from .trellis import LANES

SHORT_BASE, SHORT_P = np.uint64(1 << 31), 16
LONG_BASE, LONG_P = np.uint64(1 << 16), 12
PIECE = 8
FIELD = 6
MOST_LENGTH = 26  # of an excess
ROOM = 12  # words that one coordinate can need at most
RECIPROCAL = 32  # reciprocals of frequencies are multiples of 2^-32
LONG_BITS = 4  # of the phase that choose a bin, long format


@jit(inline="always")
def split(symbol, low):
    """Return (k, phase, low part) of a packed symbol: its ``low`` last bits, with their offset, are set apart."""
    k, phase = symbol >> 6, symbol & 63
    if low == 0:
        return k, phase, 0
    k += 1 << (low - 1)
    return k >> low, (phase + 32) >> low, k & ((1 << low) - 1)


@jit(inline="always")
def magnitude(k, phase):
    """Return ``|n - u|`` in 1/64 spacings, rounded down."""
    return 64 * k - phase - 1 if k > 0 else phase - 64 * k


@jit(inline="always")
def _excess(k, widest):
    """Return (excess >= 1, its length, sign bit) of a symbol outside 1 - K .. K."""
    negative = k <= 0
    e = 1 - widest - k if negative else k - widest
    length = 0
    while e >> (length + 1):
        length += 1
    return e, length, 32 if negative else 0


@jit(inline="always")
def _put_short(state, out, position, start, frequency, precision):
    f = np.uint64(frequency)
    if state >= f << np.uint64(63 - precision):
        position -= 1
        out[position] = np.uint32(state & np.uint64(0xFFFFFFFF))
        state >>= np.uint64(32)
    q = state // f
    return (q << np.uint64(precision)) + (state - q * f) + np.uint64(start), position


@jit(inline="always")
def _put_long(state, out, position, start, frequency, reciprocal):
    """Store one word without a branch: it is always written, and kept only if the state is too large."""
    f = np.uint64(frequency)
    out[position - 1] = np.uint16(state)
    full = np.int64(state >= f << np.uint64(32 - LONG_P))
    position -= full
    state >>= np.uint64(full << 4)
    q = (state * np.uint64(reciprocal)) >> np.uint64(RECIPROCAL)  # or one less than the quotient
    q += np.uint64(state - q * f >= f)
    return state + q * (np.uint64(1 << LONG_P) - f) + np.uint64(start), position


@jit
def encode_short(symbols, groups, tables, out):
    """Return words backwards from the end of ``out`` (uint32); returns (state, first word), or -1 if they
    do not fit.
    """
    low, shift, widest, offset, frequency, start = tables
    state, position = SHORT_BASE, out.size
    for i in range(symbols.size - 1, -1, -1):
        if position < ROOM:
            return state, -1
        k, phase, rest = split(symbols[i], low)
        if low:
            state, position = _put_short(state, out, position, rest << (SHORT_P - low), 1 << (SHORT_P - low), SHORT_P)
        g = groups[i]
        top = widest[g]
        index = k + top - 1
        if index < 0 or index >= 2 * top:
            e, length, sign = _excess(k, top)
            done = 0
            while done < length:
                width = min(PIECE, length - done)
                piece = (e >> done) & ((1 << width) - 1)
                state, position = _put_short(
                    state, out, position, piece << (SHORT_P - width), 1 << (SHORT_P - width), SHORT_P
                )
                done += width
            field = sign | length
            state, position = _put_short(
                state, out, position, field << (SHORT_P - FIELD), 1 << (SHORT_P - FIELD), SHORT_P
            )
            index = 2 * top
        entry = offset[g] + (phase >> shift) * (2 * top + 1) + index
        state, position = _put_short(state, out, position, start[entry], frequency[entry], SHORT_P)
    return state, position


@jit(inline="always")
def _put_field(state, out, position, value, width):
    """Return a field without a model, long format."""
    left = LONG_P - width
    return _put_long(state, out, position, value << left, 1 << left, np.uint64(1) << np.uint64(RECIPROCAL - left))


@jit
def _put_escape(state, out, position, k, widest):
    """Return the fields after an escape, last first."""
    e, length, sign = _excess(k, widest)
    done = 0
    while done < length:
        width = min(PIECE, length - done)
        state, position = _put_field(state, out, position, (e >> done) & ((1 << width) - 1), width)
        done += width
    return _put_field(state, out, position, sign | length, FIELD)


@jit
def _put_row(symbols, t, fields, pairs, reciprocal, out, position, states):
    """Return any row of the long format, last lane first; returns the first word.

    Parameters
    ----------
    fields
        (raw bits, K, offset).
    """
    low, widest, base = fields
    for lane in range(min(LANES, symbols.size - LANES * t) - 1, -1, -1):
        state = np.uint64(states[lane])
        k, phase, rest = split(symbols[LANES * t + lane], low)
        if low:
            state, position = _put_field(state, out, position, rest, low)
        index = k + widest - 1
        if index < 0 or index >= 2 * widest:
            state, position = _put_escape(state, out, position, k, widest)
            index = 2 * widest
        entry = base + (index << LONG_BITS) + (phase >> (6 - LONG_BITS))
        pair = pairs[entry]
        state, position = _put_long(
            state, out, position, pair >> np.uint32(16), pair & np.uint32(0xFFFF), reciprocal[entry]
        )
        states[lane] = state
    return position


@jit
def encode_long(symbols, groups, tables, out, states):
    """As ``encode_short`` with coordinate i in state i mod 16 (``states``, uint32); returns the first word or -1.

    A packed symbol and what is added to it are the place in the table: index, bin and two more bits of the phase.
    """
    low, widest, offset, pairs, reciprocal = tables
    position, d = out.size, symbols.size
    for lane in range(LANES):
        states[lane] = LONG_BASE
    x = load(states, 0)
    for t in range((d - 1) >> 4, -1, -1):
        if position < LANES * ROOM:
            return -1
        top, base = widest[groups[t]], offset[groups[t]]
        plain = low == 0 and LANES * t + LANES <= d
        if plain:
            raised = unsigned(load(symbols, LANES * t) + np.int32(64 * (top - 1)))
            plain = bits(raised >= np.uint32(128 * top)) == 0
        if plain:
            entry = (raised >> np.uint32(6 - LONG_BITS)) + np.uint32(base)
            pair = gather(pairs, entry)
            f = pair & np.uint32(0xFFFF)
            full = x >= (f << np.uint32(32 - LONG_P))
            position -= int(count(full))
            compress(out, position, x, full)
            x = choose(full, x >> np.uint32(16), x)
            q = upper_half(x, gather(reciprocal, entry))  # or one less than the quotient
            rest = x - q * f
            x = (q << np.uint32(LONG_P)) + rest + (pair >> np.uint32(16))
            x = choose(rest >= f, x + (np.uint32(1 << LONG_P) - f), x)
        else:
            store(states, 0, x)
            position = _put_row(symbols, t, (low, top, base), pairs, reciprocal, out, position, states)
            x = load(states, 0)
    store(states, 0, x)
    return position
