"""The coder of levels compiled for the CPU, by tables.

Encoding looks up the bits of each signed level and joins two or four of them into one field where they fit.
Decoding looks up the next twelve or fifteen bits, which hold up to four levels.
"""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
import torch

from ...bits import elias
from ...bits.bitstream import FIELDS, flush, words, write_bits, write_fields
from ...message import CorruptMessage

NORM_BITS = 32
AT_ONCE = 4  # levels of one entry of a decoder's table
_DENSE, _SPARSE, _FLAG = 0, 1, 2  # also the bits before a level
_NUMBERS = {"dense": _DENSE, "sparse": _SPARSE, "flag": _FLAG}
_INFINITY = 0x7F800000  # binary32 pattern


@numba.njit(cache=True, nogil=True)
def _level_codes(most, code, codes, widths):
    """Bits of level n with its sign and flag at index n + most."""
    for n in range(-most, most + 1):
        size, negative = abs(n), np.uint64(n < 0)
        if code == _FLAG and n == 0:
            codes[most], widths[most] = np.uint64(0), 1
            continue
        value, width = elias.build(size + 1 if code == _DENSE else max(size, 1))
        if code == _DENSE:
            codes[n + most] = (value << np.uint64(n != 0)) | negative
            widths[n + most] = width + (n != 0)
        else:
            flag = np.uint64(2 if code == _FLAG else 0)
            codes[n + most] = ((flag | negative) << np.uint64(width)) | value
            widths[n + most] = width + (2 if code == _FLAG else 1)


@lru_cache(maxsize=32)
def _encoder(most: int, code: int) -> tuple[np.ndarray, np.ndarray]:
    codes, widths = np.zeros(2 * most + 1, np.uint64), np.zeros(2 * most + 1, np.int64)
    _level_codes(most, code, codes, widths)
    return codes, widths


@numba.njit(cache=True, nogil=True)
def _joined(levels, most, codes, widths, parts, values, lengths):
    """Return fields of ``parts`` levels each, and of one each for what remains; returns how many."""
    m = levels.size // parts
    for j in range(m):
        value, length = np.uint64(0), np.int64(0)
        for k in range(parts):
            n = levels[parts * j + k] + most
            value = (value << np.uint64(widths[n])) | codes[n]
            length += widths[n]
        values[j], lengths[j] = value, length
    for i in range(m * parts, levels.size):
        values[m], lengths[m] = codes[levels[i] + most], widths[levels[i] + most]
        m += 1
    return m


@numba.njit(cache=True, nogil=True)
def _write(levels, patterns, step, most, codes, widths, parts, out):
    """Return dense and flag form; returns the bits."""
    state = (np.uint64(0), 0, 0)
    values, lengths = np.zeros(FIELDS + AT_ONCE, np.uint64), np.zeros(FIELDS + AT_ONCE, np.int64)
    for b in range(patterns.size):
        state = write_bits(out, state, patterns[b], NORM_BITS)
        if patterns[b] == 0:
            continue
        stop = min((b + 1) * step, levels.size)
        for start in range(b * step, stop, FIELDS):
            piece = levels[start : min(start + FIELDS, stop)]
            if parts == 4:  # written out so that each call has a fixed number
                m = _joined(piece, most, codes, widths, 4, values, lengths)
            elif parts == 2:
                m = _joined(piece, most, codes, widths, 2, values, lengths)
            else:
                m = _joined(piece, most, codes, widths, 1, values, lengths)
            state = write_fields(out, state, values, lengths, m)
    bits = 8 * state[2] + state[1]
    flush(out, state)
    return bits


@numba.njit(cache=True, nogil=True)
def _gap(gap, values, lengths, m):
    """Return the two fields of one gap from index m; returns the next index."""
    value, width = elias.build(gap)
    values[m], lengths[m] = value >> np.uint64(32), max(width - 32, 0)
    values[m + 1], lengths[m + 1] = value & np.uint64(0xFFFFFFFF), min(width, 32)
    return m + 2


@numba.njit(cache=True, nogil=True)
def _write_sparse(levels, patterns, step, most, codes, widths, out):
    """Return sparse form; returns the bits."""
    state = (np.uint64(0), 0, 0)
    values, lengths = np.zeros(3 * FIELDS, np.uint64), np.zeros(3 * FIELDS, np.int64)
    for b in range(patterns.size):
        state = write_bits(out, state, patterns[b], NORM_BITS)
        if patterns[b] == 0:
            continue
        begin, stop, last = b * step, min((b + 1) * step, levels.size), b * step - 1
        for start in range(begin, stop, FIELDS):
            m = 0
            for i in range(start, min(start + FIELDS, stop)):
                n = levels[i]
                if n != 0:
                    m = _gap(i - last, values, lengths, m)
                    values[m], lengths[m] = codes[n + most], widths[n + most]
                    m, last = m + 1, i
            state = write_fields(out, state, values, lengths, m)
        state = write_fields(out, state, values, lengths, _gap(stop - last, values, lengths, 0))
    bits = 8 * state[2] + state[1]
    flush(out, state)
    return bits


def encode(levels: torch.Tensor, norms: torch.Tensor, step: int, code: str, most: int) -> tuple[torch.Tensor, int]:
    """Write code by code into a buffer that holds the longest ones."""
    array, patterns = levels.numpy(), norms.numpy().view(np.uint32)
    codes, widths = _encoder(most, _NUMBERS[code])
    widest, head = int(widths.max()), NORM_BITS * patterns.size
    if code == "sparse":  # a gap's code has at most 64 bits
        room = head + 64 * patterns.size + (64 + widest) * int(np.count_nonzero(array))
        out = np.empty(room // 8 + 8, np.uint8)
        bits = int(_write_sparse(array, patterns, step, most, codes, widths, out))
    else:
        parts = next(p for p in (4, 2, 1) if p * widest <= 32)
        out = np.empty((head + widest * array.size) // 8 + 8, np.uint8)  # only written pages are ever there
        bits = int(_write(array, patterns, step, most, codes, widths, parts, out))
    return torch.from_numpy(out[: (bits + 7) // 8].copy()), bits


@numba.njit(cache=True, nogil=True)
def _symbol(w, code):
    """Return (signed level, bits) at the top of a 64-bit window; 0 bits if there is none."""
    if code == _FLAG and not w >> np.uint64(63):
        return np.int64(0), np.int64(1)
    head = np.uint64(code)  # bits before the level: none, the sign, the flag and the sign
    n, used = elias.parse(w << head)
    if used == 0:
        return np.int64(0), np.int64(0)
    if code == _DENSE:
        n -= 1
        negative = n > 0 and (w >> np.uint64(63 - used)) & np.uint64(1) > 0
        used += n > 0
    else:
        negative = (w >> (np.uint64(64) - head)) & np.uint64(1) > 0
        used += code
    return (-n if negative else n), used


@numba.njit(cache=True, nogil=True)
def _fill(width, code, most, counts, used, tops, symbols):
    for entry in range(1 << width):
        w, left = np.uint64(entry) << np.uint64(64 - width), width
        while counts[entry] < AT_ONCE:
            n, bits = _symbol(w, code)
            if bits == 0 or bits > left or abs(n) > most:
                break
            symbols[entry, counts[entry]] = n
            counts[entry] += 1
            used[entry] += bits
            tops[entry] = max(np.int64(tops[entry]), abs(n))
            w, left = w << np.uint64(bits), left - bits


@lru_cache(maxsize=16)
def _decoder(code: int, most: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (bits looked up; per entry: how many levels, their bits, the largest of them, the levels)."""
    width = 12 if most < 16 else 15
    counts, used = np.zeros(1 << width, np.uint8), np.zeros(1 << width, np.uint8)
    tops, symbols = np.zeros(1 << width, np.int16), np.zeros((1 << width, AT_ONCE), np.int16)
    _fill(width, code, most, counts, used, tops, symbols)
    return width, counts, used, tops, symbols


@numba.njit(cache=True, nogil=True)
def _read(words, bits, code, step, most, full, width, counts, used, tops, symbols, out):
    """Return dense and flag form; returns 0, or the first coordinate of a corrupt bucket plus 1."""
    position, shift = np.int64(0), np.uint64(64 - width)
    for start in range(0, out.size, step):
        if position + NORM_BITS > bits:
            return start + 1
        first = position >> 5
        w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
        pattern = np.uint32(w >> np.uint64(32))
        position += NORM_BITS
        if pattern >= _INFINITY:  # also every negative number
            return start + 1
        stop = min(start + step, out.size)
        if pattern == 0:
            out[start:stop] = 0
            continue
        scale, top, i = np.float64(pattern.view(np.float32)) / most, np.int64(0), np.int64(start)
        while i < stop:
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            entry = np.int64(w >> shift)
            count = np.int64(counts[entry])
            if count > 0 and i + AT_ONCE <= stop and position + width <= bits:
                for k in range(AT_ONCE):  # those beyond the count are overwritten
                    out[i + k] = np.float32(scale * np.float64(symbols[entry, k]))
                i += count
                position += np.int64(used[entry])
                top = max(top, np.int64(tops[entry]))
                continue
            n, length = _symbol(w, code)
            position += length
            if length == 0 or position > bits or abs(n) > most:
                return start + 1
            out[i] = np.float32(scale * np.float64(n))
            top = max(top, abs(n))
            i += 1
        if full and top != most:
            return start + 1
    return 0 if position == bits else out.size + 1


@numba.njit(cache=True, nogil=True)
def _read_sparse(words, bits, step, most, full, out):
    """Return sparse form into ``out`` (zeroed); returns as ``_read``."""
    position = np.int64(0)
    for start in range(0, out.size, step):
        if position + NORM_BITS > bits:
            return start + 1
        first = position >> 5
        w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
        pattern = np.uint32(w >> np.uint64(32))
        position += NORM_BITS
        if pattern >= _INFINITY:
            return start + 1
        if pattern == 0:
            continue
        scale, top = np.float64(pattern.view(np.float32)) / most, np.int64(0)
        i, stop = start - 1, min(start + step, out.size)
        while True:
            first, shift = position >> 5, np.uint64(position & 31)
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << shift
            w |= (np.uint64(words[first + 2]) << shift) >> np.uint64(32)  # a gap has up to 56 bits
            gap, length = elias.parse(w)
            position, i = position + length, i + gap
            if length == 0 or position > bits or i > stop:
                return start + 1
            if i == stop:
                break
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            n, length = _symbol(w, _SPARSE)
            position += length
            if length == 0 or position > bits or abs(n) > most:
                return start + 1
            out[i] = np.float32(scale * np.float64(n))
            top = max(top, abs(n))
        if full and top != most:
            return start + 1
    return 0 if position == bits else out.size + 1


def decode(payload: torch.Tensor, bits: int, d: int, step: int, code: str, most: int, full: bool) -> torch.Tensor:
    """Look up several codes at once, one by one where they are long."""
    stream = words(payload.numpy())
    if code == "sparse":
        out = np.zeros(d, np.float32)
        bad = _read_sparse(stream, bits, step, most, full, out)
    else:
        out = np.empty(d, np.float32)
        bad = _read(stream, bits, _NUMBERS[code], step, most, full, *_decoder(_NUMBERS[code], most), out)
    if bad > d:
        raise CorruptMessage("bits are left over after the last coordinate")
    if bad:
        raise CorruptMessage(f"the bucket at coordinate {bad - 1} has no norm or no levels of 0 .. {most}")
    return torch.from_numpy(out)
