"""The decoder of levels, on the CPU for payloads on any device: codes of varying length follow one another.

The next twelve or fifteen bits are looked up, which hold up to four levels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from ...bits import elias
from ...bits.bitstream import SPARE_WORDS, set_words
from ...compilation import jit
from ...message import CorruptMessage
from . import Code
from .cpu import DENSE, FLAG, NORM_BITS, NUMBERS, SPARSE

AT_ONCE = 4  # levels of one entry of a table
_INFINITY = 0x7F800000  # binary32 pattern


@jit
def _symbol(w, code):
    """Return (signed level, bits) at the top of a 64-bit window; 0 bits if there is none."""
    if code == FLAG and not w >> np.uint64(63):
        return np.int64(0), np.int64(1)
    head = np.uint64(code)  # bits before the level: none, the sign, the flag and the sign
    n, used = elias.parse(w << head)
    if used == 0:
        return np.int64(0), np.int64(0)
    if code == DENSE:
        n -= 1
        negative = n > 0 and (w >> np.uint64(63 - used)) & np.uint64(1) > 0
        used += n > 0
    else:
        negative = (w >> (np.uint64(64) - head)) & np.uint64(1) > 0
        used += code
    return (-n if negative else n), used


@jit
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


@jit
def _read(payload, words, bits, code, step, most, full, width, counts, used, tops, symbols, out):
    """Return dense and flag form; returns 0, or the first coordinate of a corrupt bucket plus 1."""
    set_words(payload, words)
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
            for j in range(start, stop):
                out[j] = np.float32(0)
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


@jit
def _read_sparse(payload, words, bits, step, most, full, out):
    """Return sparse form into ``out`` (zeroed); returns as ``_read``."""
    set_words(payload, words)
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
            n, length = _symbol(w, np.int64(SPARSE))
            position += length
            if length == 0 or position > bits or abs(n) > most:
                return start + 1
            out[i] = np.float32(scale * np.float64(n))
            top = max(top, abs(n))
        if full and top != most:
            return start + 1
    return 0 if position == bits else out.size + 1


def decode(payload: torch.Tensor, bits: int, d: int, step: int, code: Code, most: int, full: bool) -> torch.Tensor:
    """Return norm/most times level: float32, shape (d,), on the payload's device.

    Parameters
    ----------
    payload : tensor
        uint8, what ``encode`` gave.
    bits : int
        Its length.
    d : int
        Number of coordinates.
    step : int
        Coordinates of a bucket.
    code : {"dense", "flag", "sparse"}
        As for ``encode``.
    most : int
        Likewise.
    full : bool
        In each bucket of positive norm some level must reach ``most``.

    Raises
    ------
    CorruptMessage
        For anything that ``encode`` does not write.
    """
    array = payload.cpu().numpy()
    words = np.zeros(-(-array.size // 4) + SPARE_WORDS, np.uint32)
    if code == "sparse":
        out = np.zeros(d, np.float32)
        bad = _read_sparse(array, words, bits, step, most, full, out)
    else:
        out = np.empty(d, np.float32)
        bad = _read(array, words, bits, NUMBERS[code], step, most, full, *_decoder(NUMBERS[code], most), out)
    if bad > d:
        raise CorruptMessage("bits are left over after the last coordinate")
    if bad:
        raise CorruptMessage(f"the bucket at coordinate {bad - 1} has no norm or no levels of 0 .. {most}")
    return torch.from_numpy(out).to(payload.device)
