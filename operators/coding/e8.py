"""The adaptive arithmetic code of E8's points: the decisions of ``e8_points``, in counts that learn.

Symbols are coded with counts that start from a Gaussian law of q - u and learn; for a vector that this makes longer,
the counts stand still.  Where that law is wide, low bits are sent as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ..bits import elias
from ..compilation import jit
from . import range_coder
from .e8_model import ESCAPE_BITS, LIMIT, SINGLE, SYMBOLS, TOTAL
from .e8_points import BLOCKS, STARTS, SUMS, candidates, dithers, errors, single, symbols

# The upper half of a product of 64-bit numbers, and division by a number whose reciprocal is known.
#
# A division takes as long as four products.  Where one coder waits for the quotient and the divisor is known long
# before, its reciprocal is taken beforehand.

_WIDE = ir.IntType(128)


@intrinsic
def high_product(typing: Any, a: Any, b: Any) -> tuple[Any, Callable[[Any, Any, Any, Any], Any]]:
    """Return the upper 64 bits of the product of two uint64."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right = (builder.zext(factor, _WIDE) for factor in arguments)
        return builder.trunc(builder.lshr(builder.mul(left, right), ir.Constant(_WIDE, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


@jit
def reciprocal(divisor):
    """Return floor((2^64 - 1) / divisor), uint64."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) // np.uint64(divisor)


@jit
def quotient(dividend, divisor, inverse):
    """Return floor(dividend / divisor) of uint64 from ``reciprocal(divisor)``.

    With 2^64 / divisor = inverse + r, 0 < r <= 1, the upper half of dividend * inverse is the quotient or one less.
    """
    below = high_product(dividend, inverse)
    return below + np.uint64(dividend - below * divisor >= divisor)


DECISIONS = np.int64(9)  # of a block; with a type, unlike a literal, so that loops over it are compiled once
COSET, ALONE = np.int64(0), np.int64(1)  # contexts: the first decision, and one without neighbours


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
        state, bit = _get_bits(words, end, state, ALONE)
        word |= np.uint64(bit) << np.uint64(64 - filled)
        n, used = elias.parse(word)
        if used == filled and bit == 0:
            return state, n
    return state, np.int64(0)


@jit
def _halve(counts, row):
    """Make the counts of a context forget."""
    total = np.int64(0)
    for s in range(row, row + SYMBOLS):
        counts[s] = (counts[s] + 1) >> 1
        total += counts[s]
    counts[row + TOTAL] = total


@jit
def _put_bits(out, state, value, width):
    for i in range(width - 1, -1, -1):
        state = range_coder.encode(out, state, (value >> i) & 1, 1, 2)
    return state


@jit(error_model="numpy")
def _put(rows, aways, decisions, blocks, low_bits, counts, inverses, gain, seen, out, state):
    """Code the decisions block by block; returns the coder's state.

    The loop repeats ``range_coder.encode`` in place; a call would count references at every symbol.  What comes before
    a symbol is chosen by arithmetic: branches would be guessed wrong too often.
    """
    low, width, next_byte = state
    for b in range(blocks):
        for j in range(decisions):
            row, away, raw = rows[np.uint64(8 * j + b)], aways[np.uint64(8 * j + b)], low_bits[np.uint64(j)]
            high = away >> raw
            symbol = 2 * high - 1 if high > 0 else -2 * high
            escape = symbol - SYMBOLS + 2
            symbol = min(symbol, SYMBOLS - 1)
            below_1, total = counts[np.uint64(row)], counts[np.uint64(row + TOTAL)]
            below_2 = below_1 + counts[np.uint64(row + 1)]
            below_3 = below_2 + counts[np.uint64(row + 2)]
            before = (
                (below_1 & -np.int64(symbol == 1))
                + (below_2 & -np.int64(symbol == 2))
                + (below_3 & -np.int64(symbol > 2))
            )
            s = np.int64(3)
            while s < symbol:
                before += counts[np.uint64(row + s)]
                s += 1
            size = counts[np.uint64(row + symbol)]
            share = quotient(width, np.uint64(total), inverses[np.uint64(row)])
            skipped = share * np.uint64(before)
            low += skipped
            if low < skipped:
                range_coder.carry(out, next_byte)
            width = share * np.uint64(size) if before + size < total else width - skipped
            while width < range_coder.NARROW:
                out[np.uint64(next_byte)] = np.uint8(low >> np.uint64(56))
                next_byte += 1
                low <<= np.uint64(8)
                width <<= np.uint64(8)
            counts[np.uint64(row + symbol)] = size + gain
            counts[np.uint64(row + TOTAL)] = total + gain
            if total + gain > LIMIT:
                _halve(counts, row)
            inverses[np.uint64(row)] = reciprocal(counts[np.uint64(row + TOTAL)])
            seen[np.uint64(row + symbol)] += 1
            if symbol == SYMBOLS - 1:
                code, bits = elias.build(escape)
                seen[row + TOTAL] += bits
                low, width, next_byte = _put_bits(out, (low, width, next_byte), np.int64(code), bits)
            if raw > 0:
                seen[row + TOTAL] += raw
                low, width, next_byte = _put_bits(out, (low, width, next_byte), away, raw)
    return low, width, next_byte


@jit
def _raw_bits(raw):
    """Return the low bits of each decision of a block that are sent as they are."""
    low_bits = np.empty(DECISIONS, np.int64)
    for j in range(DECISIONS):
        low_bits[j] = raw
    low_bits[0], low_bits[DECISIONS - 1] = 0, max(0, raw - 1)
    return low_bits


@jit
def encode(x, per_step, dither, counts, inverses, gain, raw, seen, out, state, last):
    """Quantise x per_step + u and code the points: whole blocks, or the end of a vector.

    Parameters
    ----------
    dither
        uint32, shape (d,).
    counts
        Of a model, its rows one after the other, changed.
    inverses
        ``reciprocals`` of the counts, changed.
    gain
        GAIN, or 0 for counts that stand still.
    seen
        Zeros of the same shape; what was sent, with the bits without counts in the place of the sums.
    out
        Zeroed, ``room`` bytes.
    state
        uint64, shape (3,): where the coder stands, ``range_coder.START`` at first; after the end of the vector its
        first number is the length in bits.
    last
        Whether the vector ends here.
    """
    u, y = np.zeros(64), np.zeros(64)
    bases, offs, points, flips = np.empty(128), np.empty(128), np.empty(128), np.empty(128)
    rows, aways = np.empty(8 * DECISIONS, np.int64), np.empty(8 * DECISIONS, np.int64)
    coder, low_bits = (state[0], state[1], np.int64(state[2])), _raw_bits(raw)
    whole = x.size >> 3
    for first in range(0, whole, BLOCKS):
        count = min(BLOCKS, whole - first)
        dithers(dither, 8 * first, count, u)
        for b in range(count):
            for i in range(8):
                y[8 * i + b] = u[8 * i + b] + np.float64(x[8 * (first + b) + i]) * per_step
        symbols(u, y, bases, offs, points, flips, rows, aways)
        coder = _put(rows, aways, DECISIONS, count, low_bits, counts, inverses, gain, seen, out, coder)
    for i in range(8 * whole, x.size):
        z, candidate, direction, rows[0] = single(dither[i])
        point = np.int64(np.floor(np.float64(x[i]) * per_step / SINGLE + z + 0.5))
        aways[0] = (point - candidate) * direction
        low_bits[0] = raw
        coder = _put(rows, aways, ALONE, ALONE, low_bits, counts, inverses, gain, seen, out, coder)
    state[0], state[1], state[2] = coder[0], coder[1], np.uint64(coder[2])
    if last:
        state[0] = np.uint64(range_coder.close(out, coder))


@jit(error_model="numpy")
def _get(words, end, plan, blocks, first, low_bits, counts, inverses, gain, aways, state):
    """Fill lanes with the decisions of up to eight blocks; returns (state, whether all are there).

    The decisions of a block begin with number ``first``: 0, or that of the last coordinate alone.  The loop repeats
    ``range_coder.consume`` in place, for the reason given in ``_put``, and leaves out ``low``, which the stream knows.
    Symbols 0, 1, 2 are distinguished by arithmetic, and both rows of a decision are there before the parity is.
    """
    code, width, _, position = state
    for b in range(blocks):
        place, odd = np.int64(b), np.int64(0)
        for j in range(first, DECISIONS):
            row, other = plan[np.uint64(place)], plan[np.uint64(place + 64)]
            row += (other - row) & odd
            below_1, total = counts[np.uint64(row)], counts[np.uint64(row + TOTAL)]
            below_2 = below_1 + counts[np.uint64(row + 1)]
            below_3 = below_2 + counts[np.uint64(row + 2)]
            share = quotient(width, np.uint64(total), inverses[np.uint64(row)])
            end_1, end_2, end_3 = share * np.uint64(below_1), share * np.uint64(below_2), share * np.uint64(below_3)
            if code >= end_3 and below_3 < total:
                symbol, before, upper = np.int64(2), below_2, end_3
                while symbol < SYMBOLS - 1 and code >= upper:
                    before += counts[np.uint64(row + symbol)]
                    symbol += 1
                    upper = share * np.uint64(before + counts[np.uint64(row + symbol)])
                skipped = share * np.uint64(before)
                upper = upper if symbol < SYMBOLS - 1 else width
            else:
                end_2 = end_2 if below_2 < total else width
                beyond_1, beyond_2 = -np.int64(code >= end_1), -np.int64(code >= end_2)
                symbol = -(beyond_1 + beyond_2)
                above_1, above_2 = np.uint64(beyond_1), np.uint64(beyond_2)
                skipped = (end_1 & above_1) + ((end_2 - end_1) & above_2)
                upper = end_1 + ((end_2 - end_1) & above_1) + ((end_3 - end_2) & above_2)
            code -= skipped
            width = upper - skipped
            while width < range_coder.NARROW:
                code = (code << np.uint64(8)) | range_coder.byte(words, position, end)
                width <<= np.uint64(8)
                position += 8
            counts[np.uint64(row + symbol)] += gain
            counts[np.uint64(row + TOTAL)] = total + gain
            if total + gain > LIMIT:
                _halve(counts, row)
            inverses[np.uint64(row)] = reciprocal(counts[np.uint64(row + TOTAL)])
            if symbol == SYMBOLS - 1:
                (code, width, _, position), symbol = _get_escape(words, end, (code, width, _, position))
                if symbol == 0:
                    return (code, width, _, position), False
                symbol += SYMBOLS - 2
            away = (symbol + 1) >> 1 if symbol & 1 else -(symbol >> 1)
            if low_bits[np.uint64(j)] > 0:
                (code, width, _, position), low = _get_bits(words, end, (code, width, _, position), low_bits[j])
                away = (away << low_bits[j]) | low
            aways[np.uint64(8 * j + b)] = away
            odd ^= -(away & 1)
            place += 8
            if j == 0:
                place, odd = STARTS + 128 * symbol + b, -plan[np.uint64(SUMS + 8 * symbol + b)]
    return (code, width, _, position), True


@jit
def decode(words, end, step, dither, counts, inverses, gain, raw, out, state, last):
    """Fill ``out`` with step (q - u): whole blocks, or the end of a vector; whether the stream holds these points.

    Parameters
    ----------
    inverses
        ``reciprocals`` of the counts, changed.
    state
        uint64, shape (3,): where the coder stands, ``opened`` at first.
    last
        Whether the vector ends here; the stream must end too, then.
    """
    u, aways, bases, offs = np.zeros(64), np.zeros(8 * DECISIONS), np.empty(128), np.empty(128)
    plan, low_bits = np.zeros(SUMS + 16, np.int64), _raw_bits(raw)
    coder = (state[0], state[1], np.uint64(0), np.int64(state[2]))
    whole = out.size >> 3
    for first in range(0, whole, BLOCKS):
        blocks = min(BLOCKS, whole - first)
        dithers(dither, 8 * first, blocks, u)
        candidates(u, bases, offs, plan)
        coder, good = _get(words, end, plan, blocks, COSET, low_bits, counts, inverses, gain, aways, coder)
        if not good:
            return False
        errors(u, bases, aways)
        for b in range(blocks):
            for i in range(8):
                out[8 * (first + b) + i] = np.float32(step * aways[8 * i + 8 + b])
    low_bits[DECISIONS - 1] = raw
    for i in range(8 * whole, out.size):
        z, candidate, direction, plan[0] = single(dither[i])
        coder, good = _get(words, end, plan, ALONE, DECISIONS - 1, low_bits, counts, inverses, gain, aways, coder)
        if not good:
            return False
        out[i] = np.float32(step * SINGLE * (candidate + aways[8 * DECISIONS - 8] * direction - z))
    code, width, _, position = coder
    state[0], state[1], state[2] = code, width, np.uint64(position)
    if not last:
        return True
    return range_coder.finished((code, width, range_coder.window(words, position - 64, end) - code, position), end)


@jit
def opened(words, position, end):
    """Return where the coder stands before the first block: uint64, shape (3,)."""
    code, width, _, after = range_coder.open_stream(words, position, end)
    state = np.empty(3, np.uint64)
    state[0], state[1], state[2] = code, width, np.uint64(after)
    return state


@jit
def reciprocals(counts):
    """Return the reciprocal of each context's sum at the start of its row: uint64, shape of the counts."""
    inverses = np.zeros(counts.size, np.uint64)
    for row in range(0, counts.size, SYMBOLS + 1):
        inverses[row] = reciprocal(counts[row + TOTAL])
    return inverses
