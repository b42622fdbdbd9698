"""Points of the lattice E8 near a dither, in an adaptive arithmetic code.

E8 = D8 + {0, h}, D8 the integer vectors of even sum, h = (1/2, ..., 1/2).  A point q of a block of eight is sent
given the dither u of that block, which both ends know: which of the two cosets, then each coordinate by its
distance to the coset's number nearest to u_i, counted towards the side on which u_i lies.  The last coordinate of
a block has a known parity, so its candidates are two apart.  Coordinates after the last full block are quantised
one by one to the multiples of sqrt(12 G), whose cell has the same second moment.

Each decision has a context.  For the coset: by how much u is nearer to one of them (16 classes).  For a coordinate:
how far u_i lies from the nearest candidate (8 classes), and whether the sum would be even if this and all later
coordinates took theirs; if not, one of them will not, most likely the one that lies farthest, so whether it is
this one.  The last coordinate has 8 classes of its own.  Symbols are coded with adaptive counts that start from a
Gaussian law of q - u.  Where that law is wide, low bits are sent as they are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np

from . import elias, range_coder

G = 929 / 12960  # second moment of a coordinate of the error, cell of volume 1
SYMBOLS = 64  # the last one announces an escape
TOTAL = SYMBOLS  # where the sum of a context's counts stands
CLASSES = 8
LAST = 3 * CLASSES  # first context of the last coordinate: before it the sum is even, odd, odd and this is farthest
COSETS = LAST + CLASSES  # first context of the coset decisions
CONTEXTS = COSETS + 16
PRIOR, GAIN, LIMIT = 2048, 32, 1 << 18  # weight of the Gaussian law, of a symbol, and of all a context remembers
ESCAPE_BITS = 48  # most of an escape's code; no |q - u| that an encoder admits needs more
_FINE = 4.0  # low bits are sent raw where cells are at most sigma / 4
_UNIT = 2.0**-31  # of the dither, which lies in (0, 2)
SINGLE = math.sqrt(12 * G)  # spacing after the last full block


class Model(NamedTuple):
    """Starting counts, shape (CONTEXTS, SYMBOLS + 1), int64, and the number of raw low bits of a coordinate."""

    counts: np.ndarray
    raw: int


@lru_cache(maxsize=32)
def model(omega: float) -> Model:
    """For |x|^2 = d G/omega in units of the lattice, so that E(q - u)^2 = G (1 + 1/omega) a coordinate."""
    sigma = math.sqrt(G * (1 + 1 / omega))
    raw = max(0, math.floor(math.log2(sigma / _FINE)))
    counts = np.zeros((CONTEXTS, SYMBOLS + 1), np.int64)
    high = (np.arange(SYMBOLS - 1) + 1) // 2 * np.where(np.arange(SYMBOLS - 1) % 2, 1, -1)
    for context in range(COSETS):
        last = context >= LAST
        low_bits = max(0, raw - last)
        middle = (high * 2.0**low_bits + (2.0**low_bits - 1) / 2) * (2 if last else 1)
        offset = (context % CLASSES + 0.5) / (8 if last else 16)
        law = np.exp(-((middle - offset) ** 2) / (2 * sigma * sigma))
        counts[context, : SYMBOLS - 1] = 1 + np.rint(PRIOR * law / law.sum())
        counts[context, SYMBOLS - 1] = 1
    for context in range(COSETS, CONTEXTS):
        nearer = (context - COSETS + 0.5) / 8 - 1
        second = 1 / (1 + math.exp(-nearer / (2 * sigma * sigma)))
        counts[context, :2] = 1 + np.rint(PRIOR * np.array([1 - second, second]))
    counts[:, TOTAL] = counts[:, :SYMBOLS].sum(axis=1)
    return Model(counts, raw)


def worst_bits(d: int, omega: float) -> float:
    """A crude limit of ``encode``: every count 1 of the largest total, every coordinate an escape."""
    return d * (math.log2(2 * LIMIT) + 1 + model(omega).raw + ESCAPE_BITS) + d // 8 * math.log2(2 * LIMIT) + 64


_encode = numba.njit(inline="always")(range_coder.encode.py_func)  # a call would count references at every symbol
_consume = numba.njit(inline="always")(range_coder.consume.py_func)
_share_of = numba.njit(inline="always")(range_coder.share_of.py_func)


@numba.njit(inline="always")
def nearest(y, half, m):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill ``m`` with the point m of D8 for which m + half is nearest to y; returns the squared distance."""
    odd, worst, at, total = np.int64(0), -1.0, 0, 0.0
    for i in range(8):
        z = y[i] - half
        f = np.floor(z + 0.5)
        m[i] = np.int64(f)
        odd ^= m[i] & 1
        total += (z - f) * (z - f)
        if abs(z - f) > worst:
            worst, at = abs(z - f), i
    if odd:
        m[at] += 1 if y[at] - half > m[at] else -1
        total += 1 - 2 * worst
    return total


@numba.njit(inline="always")
def _class(off, scale):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return min(np.int64(abs(off) * scale), CLASSES - 1)


@numba.njit(inline="always")
def _frame(u, half, base, contexts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
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


@numba.njit(inline="always")
def _context(marked, odd):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The context of a coordinate, ``odd`` if the sum with all nearest candidates from here on is odd."""
    away = marked >= LAST
    return marked - LAST * away + (CLASSES * (1 + away) if odd else 0)


@numba.njit(inline="always")
def _last(z, parity):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(nearest candidate, direction from it to z, context) of the last coordinate, which has this parity."""
    base = parity + 2 * np.int64(np.floor((z - parity) / 2 + 0.5))
    off = z - base
    return base, 1 if off >= 0 else -1, LAST + _class(off, 8)


@numba.njit(inline="always")
def _single(z):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The same after the last full block."""
    base = np.int64(np.floor(z + 0.5))
    return base, 1 if z >= base else -1, _class(z - base, 16)


@numba.njit(inline="always")
def _coset_context(u, m):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    context = COSETS + np.int64((nearest(u, 0.0, m) - nearest(u, 0.5, m) + 1) * 8)
    return min(max(context, COSETS), CONTEXTS - 1)


@numba.njit(inline="always")
def _learn(counts, symbol):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    counts[symbol] += GAIN
    counts[TOTAL] += GAIN
    if counts[TOTAL] > LIMIT:
        total = np.int64(0)
        for s in range(SYMBOLS):
            counts[s] = (counts[s] + 1) >> 1
            total += counts[s]
        counts[TOTAL] = total


@numba.njit(inline="always")
def _put(out, state, counts, symbol):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    before = np.int64(0)
    for s in range(symbol):
        before += counts[s]
    state = _encode(out, state, before, counts[symbol], counts[TOTAL])
    _learn(counts, symbol)
    return state


@numba.njit(inline="always")
def _get(words, end, state, counts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    share = _share_of(state, counts[TOTAL])
    before, symbol = np.int64(0), 0
    while before + counts[symbol] <= share:
        before += counts[symbol]
        symbol += 1
    state = _consume(words, end, state, before, counts[symbol], counts[TOTAL])
    _learn(counts, symbol)
    return state, symbol


@numba.njit(cache=True, nogil=True)
def _put_bits(out, state, value, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for i in range(width - 1, -1, -1):
        state = range_coder.encode(out, state, (value >> i) & 1, 1, 2)
    return state


@numba.njit(cache=True, nogil=True)
def _get_bits(words, end, state, width):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    value = np.int64(0)
    for _ in range(width):
        bit = range_coder.share_of(state, 2)
        state = range_coder.consume(words, end, state, bit, 1, 2)
        value = 2 * value + bit
    return state, value


@numba.njit(cache=True, nogil=True)
def _get_escape(words, end, state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(state, n); n = 0 if there is no Elias word within ESCAPE_BITS."""
    word = np.uint64(0)
    for filled in range(1, ESCAPE_BITS + 1):
        state, bit = _get_bits(words, end, state, 1)
        word |= np.uint64(bit) << np.uint64(64 - filled)
        n, used = elias.parse(word)
        if used == filled and bit == 0:
            return state, n
    return state, np.int64(0)


@numba.njit(cache=True, nogil=True)
def _put_away(out, state, counts, away, low_bits):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    high = away >> low_bits
    symbol = 2 * high - 1 if high > 0 else -2 * high
    state = _put(out, state, counts, min(symbol, SYMBOLS - 1))
    if symbol >= SYMBOLS - 1:
        code, width = elias.build(symbol - SYMBOLS + 2)
        state = _put_bits(out, state, np.int64(code), width)
    if low_bits:
        state = _put_bits(out, state, away, low_bits)
    return state


@numba.njit(cache=True, nogil=True)
def _get_away(words, end, state, counts, low_bits):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """(state, distance, whether there was one)."""
    state, symbol = _get(words, end, state, counts)
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


@numba.njit(cache=True, nogil=True)
def encode(x, per_step, dither, counts, raw, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Quantise x per_step + u and code the points; returns the length in bits.

    dither : uint32, shape (d,).  counts : of a model, changed.  out : zeroed, with room for the worst.
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
        state = _put(out, state, counts[context], coset)
        half, point = 0.5 * coset, second if coset else first
        _frame(u, half, base, marked)
        odd, parity = base.sum() & 1, np.int64(0)
        for i in range(7):
            away = point[i] - base[i]
            symbol = away if u[i] - half >= base[i] else -away
            state = _put_away(out, state, counts[_context(marked[i], odd)], symbol, raw)
            odd ^= away & 1
            parity ^= point[i] & 1
        last, direction, context = _last(u[7] - half, parity)
        state = _put_away(out, state, counts[context], (point[7] - last) * direction >> 1, max(0, raw - 1))
    for i in range(whole, x.size):
        z = (np.float64(dither[i]) + 0.5) * _UNIT
        last, direction, context = _single(z)
        m = np.int64(np.floor(np.float64(x[i]) * per_step / SINGLE + z + 0.5))
        state = _put_away(out, state, counts[context], (m - last) * direction, raw)
    return range_coder.close(out, state)


@numba.njit(cache=True, nogil=True)
def decode(words, position, end, step, dither, counts, raw, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Fill ``out`` with step (q - u); whether the stream holds exactly that many points."""
    u, base, marked = np.empty(8), np.empty(8, np.int64), np.empty(8, np.int64)
    state = range_coder.open_stream(words, position, end)
    whole = out.size - (out.size & 7)
    for start in range(0, whole, 8):
        for i in range(8):
            u[i] = (np.float64(dither[start + i]) + 0.5) * _UNIT
        state, coset = _get(words, end, state, counts[_coset_context(u, base)])
        half = 0.5 * coset
        _frame(u, half, base, marked)
        odd, parity = base.sum() & 1, np.int64(0)
        for i in range(7):
            state, away, good = _get_away(words, end, state, counts[_context(marked[i], odd)], raw)
            if not good:
                return False
            m = base[i] + (away if u[i] - half >= base[i] else -away)
            odd ^= away & 1
            parity ^= m & 1
            out[start + i] = np.float32(step * (m + half - u[i]))
        last, direction, context = _last(u[7] - half, parity)
        state, away, good = _get_away(words, end, state, counts[context], max(0, raw - 1))
        if not good:
            return False
        out[start + 7] = np.float32(step * (last + 2 * away * direction + half - u[7]))
    for i in range(whole, out.size):
        z = (np.float64(dither[i]) + 0.5) * _UNIT
        last, direction, context = _single(z)
        state, away, good = _get_away(words, end, state, counts[context], raw)
        if not good:
            return False
        out[i] = np.float32(step * SINGLE * (last + away * direction - z))
    return range_coder.finished(state, end)
