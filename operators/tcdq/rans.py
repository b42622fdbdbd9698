"""The entropy code of TCDQ: classes of contexts, coder and decoder."""

from __future__ import annotations

import numpy as np

from ..bits.bitstream import read_field, write_bits
from ..compilation import jit
from ..compilation.simd import (
    bits,
    choose,
    compress,
    count,
    expand,
    first,
    gather,
    load,
    numbers,
    real,
    signed,
    store,
    total,
    unsigned,
    upper_half,
)
from .trellis import HALF_BITS, LANES, PHASE, Lattice, ShortDecoder, mix
from .viterbi import mix_lanes

# Asymmetric numeral systems (Duda 2013), single and in 16 interleaved states: the format and the encoders.
#
# A coordinate is written as: its symbol's index; after the escape, a 6-bit field (sign, length L) and the L low
# bits of the excess in pieces of at most 8; then the ``low`` bits that were split off the symbol.  Fields without
# a model are coded at their width in bits.  The encoder runs backwards, so that the decoder runs forwards.

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


@jit
def encode_rows(symbols, norms, tables, words, out, ends):
    """Write the messages without a model of all rows, one after the other; returns the end of the last, or -1.

    Parameters
    ----------
    symbols
        int32, shape (m, d).
    norms
        Bits of the rows' norms, uint32; a row of norm 0 has no symbols.
    words
        uint32, for the words of one row; -1 is returned if they do not fit.
    out
        uint8; receives the messages.
    ends
        int64, shape (m,); receives the end of each message.
    """
    groups, width = np.zeros(symbols.shape[1], np.uint8), np.int64(32)  # a literal would be compiled apart
    end = np.uint64(0), np.int64(0), np.int64(0)
    for row in range(norms.size):
        end = write_bits(out, end, norms[row], width)
        if norms[row]:
            state, first = encode_short(symbols[row], groups, tables, words)
            if first < 0:
                return -1
            end = write_bits(out, end, np.uint32(state >> np.uint64(32)), width)
            end = write_bits(out, end, np.uint32(state & np.uint64(0xFFFFFFFF)), width)
            for i in range(first, words.size):
                end = write_bits(out, end, words[i], width)
        ends[row] = end[2]
    return end[2]


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


# Magnitudes by context: the class of every row of coordinates, and the encoder's histograms.
#
# A row is one coordinate of each stream: 16 in the long format, one in the short.  Its class follows from a running
# sum of decoded magnitudes in which each coordinate has lost 1/16 of its weight for every later one (in the long
# format: all of it after the next row).


@jit(inline="always")
def next_class(c, energy, thresholds):
    """Return the number of thresholds that do not exceed ``energy``, searched from c: it seldom moves far."""
    while c < thresholds.size and energy >= thresholds[c]:
        c += 1
    while c > 0 and energy < thresholds[c - 1]:
        c -= 1
    return c


@jit(inline="always")
def decay_energy(energy, total, width):
    """Return the running sum after a row of ``width`` coordinates whose magnitudes add to ``total``."""
    return energy - (energy * width >> 4) + total


@jit(inline="always")
def _sum(symbols, row, width, low):
    """Sum of the magnitudes of a row, in 1/64 spacings."""
    total = 0
    for i in range(width * row, min(width * row + width, symbols.size)):
        k, phase, _ = split(symbols[i], low)
        total += magnitude(k, phase)
    return total


@jit
def classify(symbols, low, thresholds, width, classes):
    """Fill the class of every row from those before it; returns the sum of (2 j + 1)^2 over all magnitudes j.

    It is below 2^63, since ``|x|/step`` is below 2^25.1, sqrt(d) at most 2^16 and no error above 2.
    """
    energy, squares, c = 0, 0, 0
    for row in range(classes.size):
        c = next_class(c, energy, thresholds)
        classes[row] = c
        total = 0
        for i in range(width * row, min(width * row + width, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j = magnitude(k, phase)
            total += j
            squares += (2 * j + 1) * (2 * j + 1)
        energy = decay_energy(energy, total, width)
    return squares


@jit
def histogram(symbols, low, thresholds, width, stride, levels, counts):
    """Return levels of magnitude by class in every ``stride``-th row; returns their sum of squared magnitudes.

    A stride above 1 needs rows of 16, whose class depends on one row alone.
    """
    squares, energy, c = 0.0, 0, 0
    for row in range(0, (symbols.size + width - 1) // width, stride):
        if stride > 1 and row:
            energy = _sum(symbols, row - 1, width, low)
        c = next_class(c, energy, thresholds)
        total = 0
        for i in range(width * row, min(width * row + width, symbols.size)):
            k, phase, _ = split(symbols[i], low)
            j, more = magnitude(k, phase), 0
            total += j
            squares += (j + 0.5) * (j + 0.5)
            while j >= levels.size:
                j >>= 1
                more += 8
            counts[c, levels[j] + more] += 1
        energy = decay_energy(energy, total, width)
    return squares


# The decoders of ``rans``: symbols, parities, next states and values in one pass, forwards.


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
def decode_rows(data, ends, step, scale, seeds, decoder, out):
    """Fill the rows of ``out`` from messages without a model; returns whether an encoder can have written them.

    Parameters
    ----------
    data
        uint8, the messages one after the other; each of 4 bytes, of a zero vector, or of 12 and whole words.
    ends
        int64, shape (m,), the end of each.
    step, scale
        float32, shape (m,); as in ``Lattice``.
    seeds
        uint32, shape (m, 2).
    decoder
        Of any vector of this length; the numbers of each row take the place of its lattice's.
    """
    tables, contexts, lattice, after, lanes = decoder
    words, begin = np.empty(data.size // 4 + ROOM, np.uint32), 0
    for row in range(ends.size):
        count = (ends[row] - begin) // 4 - 3
        if count >= 0:
            state = read_field(data, 8 * (begin + 4), 64)
            if state < SHORT_BASE or state >= np.uint64(1) << np.uint64(63):
                return False
            for i in range(count):
                words[i] = np.uint32(read_field(data, 8 * (begin + 12 + 4 * i), 32))
            words[count : count + ROOM] = 0
            grid = Lattice(step[row], scale[row], seeds[row, 0], seeds[row, 1], lattice.shift, lattice.centre)
            of_row = ShortDecoder(tables, contexts, grid, after, lanes)
            if decode_short(words[: count + ROOM], state, of_row, out[row]) != count:
                return False
        begin = ends[row]
    return True


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
