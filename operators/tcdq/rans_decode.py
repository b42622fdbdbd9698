"""The decoders of ``rans``: symbols, parities, next states and values in one pass, forwards."""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .classes import decay_energy, next_class
from .dither import HALF_BITS, PHASE, mix
from .lanes import bits, choose, count, first, numbers, real, signed, total, unsigned
from .lanes_memory import expand, gather, load, store
from .rans import FIELD, LONG_BASE, LONG_P, MOST_LENGTH, PIECE, ROOM, SHORT_BASE, SHORT_P, magnitude
from .trellis import LANES
from .viterbi_simd import mix_lanes


@jit(inline="always")
def _take_short(state, words, position, width):
    """Return a field of ``width`` bits."""
    p = np.uint64(SHORT_P)
    shift = np.uint64(SHORT_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    if state < SHORT_BASE:
        state = (state << np.uint64(32)) | np.uint64(words[position])
        position += 1
    return np.int64(value), state, position


@jit(inline="always")
def _refill(state, words, position):
    """Read one word without a branch: it is used only if the state is too small."""
    short = np.uint64(state < LONG_BASE)
    state = (state << (short << np.uint64(4))) | (np.uint64(words[np.uint64(position)]) & (np.uint64(0) - short))
    return state, position + np.int64(short)


@jit(inline="always")
def _take_long(state, words, position, width):
    p = np.uint64(LONG_P)
    shift = np.uint64(LONG_P - width)
    value = (state & ((np.uint64(1) << p) - np.uint64(1))) >> shift
    state = ((state >> p) << shift) + (state & ((np.uint64(1) << shift) - np.uint64(1)))
    state, position = _refill(state, words, position)
    return np.int64(value), state, position


@jit
def _take_escape(state, words, position, widest):
    """Return (symbol, state, position); symbol 0 for a length that nobody writes."""
    field, state, position = _take_long(state, words, position, FIELD)
    e, left = 1, field & 31
    if left > MOST_LENGTH:
        return 0, state, position
    while left > 0:
        width = PIECE if left % PIECE == 0 else left % PIECE
        piece, state, position = _take_long(state, words, position, width)
        e = (e << width) | piece
        left -= width
    return (1 - widest - e if field & 32 else widest + e), state, position


@jit(inline="always")
def _phase(i, lattice, parity):
    """Return (q, w, phase) of a coordinate: what the dither and the forced parity say."""
    u = np.int64(2 * np.int64(mix(i, lattice.first, lattice.second) >> np.uint32(lattice.shift)) + 1 - lattice.centre)
    a = u - (parity << HALF_BITS)
    w = a & PHASE
    return a >> 24, w, w >> 18


@jit(inline="always")
def _value(k, w, lattice):
    return (np.float32(k) - np.float32(w) * np.float32(2.0**-24)) * lattice.step * lattice.scale


@jit
def decode_short(words, state, decoder, out):
    """Fill ``out``; returns the number of words read, or -1 for a stream that nobody wrote.

    Parameters
    ----------
    words
        uint32, followed by ROOM spare ones.

    Notes
    -----
    Where a symbol's interval begins is compared for 16 of them at once: no branch depends on the symbol.
    """
    tables, contexts, lattice, after, lanes = decoder
    low, shift, widest, offset, frequency, start = tables
    starts, thresholds = contexts
    trellis = np.zeros(lanes, np.int64)
    position, energy, c, many = 0, 0, 0, widest.size > 1
    mask = np.uint64((1 << SHORT_P) - 1)
    for i in range(out.size):
        if many:
            c = next_class(c, energy, thresholds)
        g = starts[c] if many else 0
        lane = i % lanes
        s = trellis[lane]
        q, w, fine = _phase(i, lattice, s & 1)
        phase = fine if low == 0 else (fine + 32) >> low
        top = widest[g]
        size = 2 * top + 1
        row = offset[g] + (phase >> shift) * size
        slot = state & mask
        below, ahead = 0, first(load(start, row) > np.uint32(slot))
        while ahead == LANES and below + LANES < size:
            below += LANES
            ahead = first(load(start, row + below) > np.uint32(slot))
        below = min(below + np.int64(ahead), size) - 1
        entry = row + below
        state = np.uint64(frequency[entry]) * (state >> np.uint64(SHORT_P)) + slot - np.uint64(start[entry])
        if state < SHORT_BASE:
            state = (state << np.uint64(32)) | np.uint64(words[position])
            position += 1
        k = below + 1 - top
        if below == 2 * top:
            field, state, position = _take_short(state, words, position, FIELD)
            e, left = 1, field & 31
            if left > MOST_LENGTH:
                return -1
            while left > 0:
                width = PIECE if left % PIECE == 0 else left % PIECE
                piece, state, position = _take_short(state, words, position, width)
                e = (e << width) | piece
                left -= width
            k = 1 - top - e if field & 32 else top + e
        if many:
            energy = decay_energy(energy, magnitude(k, phase), 1)
        if low:
            rest, state, position = _take_short(state, words, position, low)
            k = (k << low) + rest - (1 << (low - 1))
        if position > words.size - ROOM:
            return -1
        trellis[lane] = after[2 * s + ((k + q) & 1)]
        out[i] = _value(k, w, lattice)
    return position if state == SHORT_BASE else -1


@jit
def _any_row(states, trellis, row, words, position, fields, table, lattice, out):
    """Return (position, sum of magnitudes) of any row, lane by lane; position -1 for an escape that nobody writes."""
    low, top, base, a, b = fields
    energy = 0
    for lane in range(min(LANES, out.size - row)):
        s, state = np.int64(trellis[lane]), np.uint64(states[lane])
        q, w, fine = _phase(np.uint32(row + lane), lattice, s & 1)
        phase = fine if low == 0 else (fine + 32) >> low
        slot = np.int64(state & np.uint64((1 << LONG_P) - 1))
        entry = np.int64(table[np.uint64(base + ((phase >> 2) << LONG_P) + slot)])
        state = np.uint64(entry >> 20) * (state >> np.uint64(LONG_P)) + np.uint64((entry >> 8) & 4095)
        state, position = _refill(state, words, position)
        index = entry & 255
        k = index + 1 - top
        if index == 2 * top:
            k, state, position = _take_escape(state, words, position, top)
            if k == 0:
                return -1, 0
        energy += magnitude(k, phase)
        if low:
            rest, state, position = _take_long(state, words, position, low)
            k = (k << low) + rest - (1 << (low - 1))
        trellis[lane] = np.uint32((s >> 1) ^ (s & 1) * a ^ ((k + q) & 1) * b)
        states[lane] = np.uint32(state)
        out[row + lane] = _value(k, w, lattice)
    return position, energy


@jit(inline="always")
def _shifted(row, s, lattice):
    """Return the dither less the parity of the states s, int32."""
    u = signed(mix_lanes(numbers(row), lattice.first, lattice.second) >> np.uint32(lattice.shift))
    return u * np.int32(2) + np.int32(1 - lattice.centre) - signed((s & np.uint32(1)) << np.uint32(HALF_BITS))


@jit(inline="always")
def _following(s, free, a, b):
    """Return the next states of the trellis."""
    none = np.uint32(0)
    return (s >> np.uint32(1)) ^ ((none - (s & np.uint32(1))) & np.uint32(a)) ^ ((none - free) & np.uint32(b))


@jit
def decode_long(words, states, decoder, out):
    """As ``decode_short`` for 16 interleaved states, with the symbols' table of every group.

    Parameters
    ----------
    words
        uint16, followed by 16 ROOM spare ones.
    states
        uint32; they are brought to the end.

    Notes
    -----
    Rows with low parts or escapes are read lane by lane.
    """
    low, widest, table, contexts, lattice, a, b = decoder
    starts, thresholds = contexts
    trellis = np.zeros(LANES, np.uint32)
    position, energy, c, d = np.int64(0), np.int64(0), 0, out.size  # literal zeros would compile rows twice
    many, last = widest.size > 1, words.size - LANES * ROOM
    x, s = load(states, 0), load(trellis, 0)
    for row in range(0, d, LANES):
        c = next_class(c, energy, thresholds)
        g = starts[c] if many else 0
        top, base = widest[g], g << (4 + LONG_P)
        plain = low == 0 and row + LANES <= d
        if plain:
            shifted = _shifted(np.uint32(row), s, lattice)
            w = shifted & np.int32(PHASE)
            slot = (x & np.uint32((1 << LONG_P) - 1)) + np.uint32(base)
            entry = gather(table, ((unsigned(w) >> np.uint32(20)) << np.uint32(LONG_P)) + slot)
            index = entry & np.uint32(255)
            plain = bits(index == np.uint32(2 * top)) == 0
        if plain:
            x = (entry >> np.uint32(20)) * (x >> np.uint32(LONG_P)) + ((entry >> np.uint32(8)) & np.uint32(4095))
            short = x < np.uint32(LONG_BASE)
            x = choose(short, (x << np.uint32(16)) | expand(words, position, short), x)
            position += np.int64(count(short))
            k = signed(index) + np.int32(1 - top)
            s = _following(s, unsigned(k + (shifted >> np.int32(24))) & np.uint32(1), a, b)
            store(out, row, (real(k) - real(w) * np.float32(2.0**-24)) * lattice.step * lattice.scale)
            if many:
                spacings = (k << np.int32(6)) - (w >> np.int32(18))
                energy = np.int64(total(choose(k > np.int32(0), spacings - np.int32(1), np.int32(0) - spacings)))
        else:
            store(states, 0, x)
            store(trellis, 0, s)
            position, energy = _any_row(
                states, trellis, row, words, position, (low, top, base, a, b), table, lattice, out
            )
            x, s = load(states, 0), load(trellis, 0)
        if position < 0 or position > last:
            return -1
    store(states, 0, x)
    for lane in range(LANES):
        if states[lane] != LONG_BASE:
            return -1
    return position
