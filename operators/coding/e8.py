"""Points of the lattice E8 near a dither, in an adaptive arithmetic code.

E8 = D8 + {0, h}, D8 the integer vectors of even sum, h = (1/2, ..., 1/2).  A point q of a block of eight is sent
given the dither u of that block, which both ends know: which of the two cosets, then each coordinate by its
distance to the coset's number nearest to u_i, counted towards the side on which u_i lies.  The last coordinate of
a block has a known parity, so its candidates are two apart.  Coordinates after the last full block are quantised
one by one to the multiples of sqrt(12 G), whose cell has the same second moment.

Each decision has a context.  For the coset: by how much u is nearer to one of them (16 classes).  For a coordinate:
how far u_i lies from the nearest candidate (8 classes), and whether the sum would be even if this and all later
coordinates took theirs; if not, one of them will not, most likely the one that lies farthest, so whether it is
this one.  The last coordinate has 8 classes of its own, and so have those after the last full block.  Symbols are
coded with counts that start from a Gaussian law of q - u and learn; for a vector that this makes longer, the counts
stand still.  Where that law is wide, low bits are sent as they are.
"""

from __future__ import annotations

import numpy as np

from ..bits import elias
from ..compilation import jit
from . import range_coder
from .e8_model import CLASSES, CONTEXTS, COSETS, ESCAPE_BITS, LAST, LIMIT, SINGLE, SINGLES, SYMBOLS, TOTAL

_UNIT = 2.0**-31  # of the dither, which lies in (0, 2)

_encode = jit(range_coder.encode.py_func, inline="always")  # a call would count references at every symbol
_consume = jit(range_coder.consume.py_func, inline="always")
_share_of = jit(range_coder.share_of.py_func, inline="always")


@jit(inline="always")
def nearest(y, half, m):
    """Fill ``m`` with the point m of D8 for which m + half is nearest to y; returns the squared distance."""
    odd, worst, farthest, total = np.int64(0), -1.0, 0, 0.0
    for i in range(8):
        z = y[i] - half
        f = np.floor(z + 0.5)
        m[i] = np.int64(f)
        odd ^= m[i] & 1
        total += (z - f) * (z - f)
        if abs(z - f) > worst:
            worst, farthest = abs(z - f), i
    if odd:
        m[farthest] += 1 if y[farthest] - half > m[farthest] else -1
        total += 1 - 2 * worst
    return total


@jit(inline="always")
def _class(off, scale):
    return min(np.int64(abs(off) * scale), CLASSES - 1)


@jit(inline="always")
def _frame(u, half, base, contexts):
    """Fill the nearest candidates of the eight coordinates, and their contexts should the sum of all be even.

    Contexts of an odd sum are ``CLASSES`` higher, those of the farthest of the later ones 2 ``CLASSES``; ``base`` of
    the last coordinate is not used, its candidates depend on the others.
    """
    farthest = -1.0
    for i in range(7, -1, -1):
        f = np.floor(u[i] - half + 0.5)
        off = abs(u[i] - half - f)
        base[i] = np.int64(f)
        contexts[i] = _class(off, 16) + (LAST if off > farthest else 0)
        farthest = max(farthest, off)


@jit(inline="always")
def _context(marked, odd):
    """Return the context of a coordinate, ``odd`` if the sum with all nearest candidates from here on is odd."""
    away = marked >= LAST
    return marked - LAST * away + (CLASSES * (1 + away) if odd else 0)


@jit(inline="always")
def _last(z, parity):
    """Return (nearest candidate, direction from it to z, context) of the last coordinate, which has this parity."""
    base = parity + 2 * np.int64(np.floor((z - parity) / 2 + 0.5))
    off = z - base
    return base, 1 if off >= 0 else -1, LAST + _class(off, 8)


@jit(inline="always")
def _single(z):
    """Return the same after the last full block."""
    base = np.int64(np.floor(z + 0.5))
    return base, 1 if z >= base else -1, SINGLES + _class(z - base, 16)


@jit(inline="always")
def _coset_context(u, m):
    context = COSETS + np.int64((nearest(u, 0.0, m) - nearest(u, 0.5, m) + 1) * 8)
    return min(max(context, COSETS), CONTEXTS - 1)


@jit(inline="always")
def _learn(counts, context, gain, symbol):
    counts[context, symbol] += gain
    counts[context, TOTAL] += gain
    if counts[context, TOTAL] > LIMIT:
        total = np.int64(0)
        for s in range(SYMBOLS):
            counts[context, s] = (counts[context, s] + 1) >> 1
            total += counts[context, s]
        counts[context, TOTAL] = total


@jit(inline="always")
def _put(out, state, counts, context, gain, symbol):
    before = np.int64(0)
    for s in range(symbol):
        before += counts[context, s]
    state = _encode(out, state, before, counts[context, symbol], counts[context, TOTAL])
    _learn(counts, context, gain, symbol)
    return state


@jit(inline="always")
def _get(words, end, state, counts, context, gain):
    share = _share_of(state, counts[context, TOTAL])
    before, symbol = np.int64(0), 0
    while before + counts[context, symbol] <= share:
        before += counts[context, symbol]
        symbol += 1
    state = _consume(words, end, state, before, counts[context, symbol], counts[context, TOTAL])
    _learn(counts, context, gain, symbol)
    return state, symbol


@jit
def _put_bits(out, state, value, width):
    for i in range(width - 1, -1, -1):
        state = range_coder.encode(out, state, (value >> i) & 1, 1, 2)
    return state


@jit
def _get_bits(words, end, state, width):
    value = np.int64(0)
    for _ in range(width):
        bit = range_coder.share_of(state, 2)
        state = range_coder.consume(words, end, state, bit, 1, 2)
        value = 2 * value + bit
    return state, value


@jit
def _get_escape(words, end, state):
    """Return (state, n); n = 0 if there is no Elias word within ESCAPE_BITS."""
    word = np.uint64(0)
    for filled in range(1, ESCAPE_BITS + 1):
        state, bit = _get_bits(words, end, state, 1)
        word |= np.uint64(bit) << np.uint64(64 - filled)
        n, used = elias.parse(word)
        if used == filled and bit == 0:
            return state, n
    return state, np.int64(0)


@jit
def _put_away(out, state, counts, context, gain, away, low_bits, seen):
    high = away >> low_bits
    symbol = 2 * high - 1 if high > 0 else -2 * high
    state = _put(out, state, counts, context, gain, min(symbol, SYMBOLS - 1))
    seen[context, min(symbol, SYMBOLS - 1)] += 1
    seen[context, TOTAL] += low_bits
    if symbol >= SYMBOLS - 1:
        code, width = elias.build(symbol - SYMBOLS + 2)
        seen[context, TOTAL] += width
        state = _put_bits(out, state, np.int64(code), width)
    if low_bits:
        state = _put_bits(out, state, away, low_bits)
    return state


@jit
def _get_away(words, end, state, counts, context, gain, low_bits):
    """Return (state, distance, whether there was one)."""
    state, symbol = _get(words, end, state, counts, context, gain)
    n = np.int64(symbol)
    if symbol == SYMBOLS - 1:
        state, n = _get_escape(words, end, state)
        if n == 0:
            return state, n, False
        n += SYMBOLS - 2
    away = (n + 1) >> 1 if n & 1 else -(n >> 1)
    if low_bits:
        state, low = _get_bits(words, end, state, low_bits)
        away = (away << low_bits) | low
    return state, away, True


@jit
def encode(x, per_step, dither, counts, gain, raw, seen, out):
    """Quantise x per_step + u and code the points; returns the length in bits.

    Parameters
    ----------
    dither
        uint32, shape (d,).
    counts
        Of a model, changed.
    gain
        GAIN, or 0 for counts that stand still.
    seen
        Zeros of the same shape; what was sent, with the bits without counts in its last column.
    out
        Zeroed, ``room`` bytes.
    """
    u, y = np.empty(8), np.empty(8)
    first, second = np.empty(8, np.int64), np.empty(8, np.int64)
    base, marked = np.empty(8, np.int64), np.empty(8, np.int64)
    state = range_coder.START
    whole = x.size - (x.size & 7)
    for start in range(0, whole, 8):
        for i in range(8):
            u[i] = (np.float64(dither[start + i]) + 0.5) * _UNIT
            y[i] = u[i] + np.float64(x[start + i]) * per_step
        context = _coset_context(u, first)
        coset = np.int64(nearest(y, 0.5, second) < nearest(y, 0.0, first))
        state = _put(out, state, counts, context, gain, coset)
        seen[context, coset] += 1
        half, point = 0.5 * coset, second if coset else first
        _frame(u, half, base, marked)
        odd, parity = base.sum() & 1, np.int64(0)
        for i in range(7):
            away = point[i] - base[i]
            symbol = away if u[i] - half >= base[i] else -away
            context = _context(marked[i], odd)
            state = _put_away(out, state, counts, context, gain, symbol, raw, seen)
            odd ^= away & 1
            parity ^= point[i] & 1
        last, direction, context = _last(u[7] - half, parity)
        symbol = (point[7] - last) * direction >> 1
        state = _put_away(out, state, counts, context, gain, symbol, max(0, raw - 1), seen)
    for i in range(whole, x.size):
        z = (np.float64(dither[i]) + 0.5) * _UNIT
        last, direction, context = _single(z)
        m = np.int64(np.floor(np.float64(x[i]) * per_step / SINGLE + z + 0.5))
        state = _put_away(out, state, counts, context, gain, (m - last) * direction, raw, seen)
    return range_coder.close(out, state)


@jit
def decode(words, position, end, step, dither, counts, gain, raw, out):
    """Fill ``out`` with step (q - u); whether the stream holds exactly that many points."""
    u, base, marked = np.empty(8), np.empty(8, np.int64), np.empty(8, np.int64)
    state = range_coder.open_stream(words, position, end)
    whole = out.size - (out.size & 7)
    for start in range(0, whole, 8):
        for i in range(8):
            u[i] = (np.float64(dither[start + i]) + 0.5) * _UNIT
        state, coset = _get(words, end, state, counts, _coset_context(u, base), gain)
        half = 0.5 * coset
        _frame(u, half, base, marked)
        odd, parity = base.sum() & 1, np.int64(0)
        for i in range(7):
            state, away, good = _get_away(words, end, state, counts, _context(marked[i], odd), gain, raw)
            if not good:
                return False
            m = base[i] + (away if u[i] - half >= base[i] else -away)
            odd ^= away & 1
            parity ^= m & 1
            out[start + i] = np.float32(step * (m + half - u[i]))
        last, direction, context = _last(u[7] - half, parity)
        state, away, good = _get_away(words, end, state, counts, context, gain, max(0, raw - 1))
        if not good:
            return False
        out[start + 7] = np.float32(step * (last + 2 * away * direction + half - u[7]))
    for i in range(whole, out.size):
        z = (np.float64(dither[i]) + 0.5) * _UNIT
        last, direction, context = _single(z)
        state, away, good = _get_away(words, end, state, counts, context, gain, raw)
        if not good:
            return False
        out[i] = np.float32(step * SINGLE * (last + away * direction - z))
    return range_coder.finished(state, end)
