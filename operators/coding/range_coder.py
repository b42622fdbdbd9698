"""A 64-bit range coder with exact carries, and an ending that needs no length field.

The state of an encoder is (low, range, bytes written): the interval [low, low + range) of 64-bit fractions after
the bytes written.  A symbol that owns [start, start + size) of ``total`` equal shares narrows the interval; with
range >= 2^56 the rounding costs at most total/2^56 of the range a symbol.  The ending writes the fewest bits
whose every continuation lies inside, at most 2 more than the information coded.
(Martin 1979; carry propagation after Schindler 1998.)
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
NARROW = np.uint64(1 << 56)  # a range below it is widened by a byte
START = (np.uint64(0), _FULL, 0)


@jit
def carry(out, at):
    """Add 1 to the number formed by the bytes before ``at``."""
    i = at - 1
    while out[i] == 255:
        out[i] = 0
        i -= 1
    out[i] += 1


@jit
def encode(out, state, start, size, total):
    """Return narrow to one symbol; the last symbol also takes the remainder of the division."""
    low, width, next_byte = state
    share = width // np.uint64(total)
    before = share * np.uint64(start)
    low += before
    if low < before:
        carry(out, next_byte)
    width = share * np.uint64(size) if start + size < total else width - before
    while width < NARROW:
        out[next_byte] = np.uint8(low >> np.uint64(56))
        next_byte += 1
        low <<= np.uint64(8)
        width <<= np.uint64(8)
    return low, width, next_byte


@jit
def ending(low, width):
    """Return (value, bits): the least multiple of 2^(64 - bits), fewest bits first, whose block lies in the
    interval.
    """
    for bits in range(1, 64):
        block = np.uint64(1) << np.uint64(64 - bits)
        up = (np.uint64(0) - low) & (block - np.uint64(1))
        if up <= width and block <= width - up:
            return low + up, bits
    return low, 64


@jit
def close(out, state):
    """Write the ending; returns the total length in bits.  ``out`` has room for 8 more bytes."""
    low, width, next_byte = state
    value, bits = ending(low, width)
    if value < low:
        carry(out, next_byte)
    for i in range((bits + 7) // 8):
        out[next_byte + i] = np.uint8(value >> np.uint64(56 - 8 * i))
    return 8 * next_byte + bits


@jit
def open_stream(words, position, end):
    """State of a decoder at a bit position of ``bitstream.words``: (value - low, range, low, next position)."""
    return window(words, position, end), _FULL, np.uint64(0), position + 64


@jit
def byte(words, position, end):
    """Return the next 8 bits; zeros after the end."""
    if position >= end:
        return np.uint64(0)
    i = position >> 5
    w = ((np.uint64(words[i]) << np.uint64(32)) | np.uint64(words[i + 1])) << np.uint64(position & 31)
    return w >> np.uint64(56)


@jit
def window(words, position, end):
    """Return the 64 bits from a position on, zeros after the end: value - low is these without low."""
    bits = np.uint64(0)
    for _ in range(8):
        bits = (bits << np.uint64(8)) | byte(words, position, end)
        position += 8
    return bits


@jit
def share_of(state, total):
    """Return which of ``total`` shares the value lies in (the remainder belongs to the last one)."""
    code, width, _, _ = state
    return min(np.int64(code // (width // np.uint64(total))), np.int64(total - 1))


@jit
def consume(words, end, state, start, size, total):
    """Return narrow to the symbol found, exactly as the encoder did."""
    code, width, low, position = state
    share = width // np.uint64(total)
    before = share * np.uint64(start)
    code -= before
    low += before
    width = share * np.uint64(size) if start + size < total else width - before
    while width < NARROW:
        code = (code << np.uint64(8)) | byte(words, position, end)
        low <<= np.uint64(8)
        width <<= np.uint64(8)
        position += 8
    return code, width, low, position


@jit
def finished(state, end):
    """Return whether the stream ends here, with exactly the ending that the encoder writes."""
    code, width, low, position = state
    value, bits = ending(low, width)
    return code < width and position - 64 + bits == end and low + code == value
