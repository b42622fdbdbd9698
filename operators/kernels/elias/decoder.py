"""The decoder of levels, on the CPU for payloads on any device: codes of varying length follow one another.

The next twelve or fifteen bits are looked up, which hold up to four levels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from ...bits import elias
from ...bits.bitstream import SPARE_WORDS, set_words
from ...bits.writer import in_windows
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
def _read(payload, words, bits, state, beyond, code, step, most, full, width, counts, used, tops, symbols, out):
    """Return dense and flag form; returns 0, or the first coordinate of a corrupt bucket plus 1.

    ``state`` is (position, whether a bucket begins, its norm's pattern, its largest level), changed unless it returns
    so; ``beyond`` coordinates of the last bucket come in later runs.
    """
    set_words(payload, words)
    position, begins, pattern, top = state[0], state[1] != 0, np.uint32(state[2]), state[3]
    shift = np.uint64(64 - width)
    for start in range(0, out.size, step):
        if begins:
            if position + NORM_BITS > bits:
                return start + 1
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            pattern, top = np.uint32(w >> np.uint64(32)), np.int64(0)
            position += NORM_BITS
            if pattern >= _INFINITY:  # also every negative number
                return start + 1
        stop = min(start + step, out.size)
        if pattern == 0:
            for j in range(start, stop):
                out[j] = np.float32(0)
            continue
        scale, i = np.float64(np.uint32(pattern).view(np.float32)) / most, np.int64(start)
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
        if full and top != most and beyond == 0:
            return start + 1
    state[0], state[1], state[2], state[3] = position, np.int64(beyond == 0), np.int64(pattern), top
    return 0


@jit
def _read_sparse(payload, words, bits, state, beyond, step, most, full, out):
    """Return sparse form into ``out`` (zeroed); returns as ``_read``, and has a fifth number in ``state``.

    It is where, counted from the end of the run, the next level that is not 0 stands, or the bucket ends.
    """
    set_words(payload, words)
    position, begins, pattern, top = state[0], state[1] != 0, np.uint32(state[2]), state[3]
    i = state[4]
    for start in range(0, out.size, step):
        if begins:
            if position + NORM_BITS > bits:
                return start + 1
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            pattern, top, i = np.uint32(w >> np.uint64(32)), np.int64(0), np.int64(start - 1)
            position += NORM_BITS
            if pattern >= _INFINITY:
                return start + 1
        if pattern == 0:
            continue
        scale, stop, waits = (
            np.float64(np.uint32(pattern).view(np.float32)) / most,
            min(start + step, out.size),
            not begins,
        )
        while True:
            if not waits:
                first, shift = position >> 5, np.uint64(position & 31)
                w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << shift
                w |= (np.uint64(words[first + 2]) << shift) >> np.uint64(32)  # a gap has up to 56 bits
                gap, length = elias.parse(w)
                position, i = position + length, i + gap
                if length == 0 or position > bits or i > stop + beyond:
                    return start + 1
            waits = False
            if i >= stop:
                break
            first = position >> 5
            w = ((np.uint64(words[first]) << np.uint64(32)) | np.uint64(words[first + 1])) << np.uint64(position & 31)
            n, length = _symbol(w, np.int64(SPARSE))
            position += length
            if length == 0 or position > bits or abs(n) > most:
                return start + 1
            out[i] = np.float32(scale * np.float64(n))
            top = max(top, abs(n))
        if full and top != most and beyond == 0:
            return start + 1
    state[0], state[1], state[2], state[3] = position, np.int64(beyond == 0), np.int64(pattern), top
    state[4] = i - out.size
    return 0


START = (0, 1, 0, 0, 0)  # state before the first run


def _run(
    payload: np.ndarray,
    bits: int,
    state: np.ndarray,
    step: int,
    code: str,
    most: int,
    full: bool,
    out: np.ndarray,
    beyond: int = 0,
) -> int:
    """Fill ``out`` (zeros for "sparse") with whole buckets, or a run of one that goes on; returns as ``_read``."""
    words = np.zeros(-(-payload.size // 4) + SPARE_WORDS, np.uint32)
    if code == "sparse":
        return int(_read_sparse(payload, words, bits, state, beyond, step, most, full, out))
    number = NUMBERS[code]
    return int(_read(payload, words, bits, state, beyond, number, step, most, full, *_decoder(number, most), out))


def _check(bad: int, most: int) -> None:
    if bad:
        raise CorruptMessage(f"the bucket at coordinate {bad - 1} has no norm or no levels of 0 .. {most}")


def _finish(position: int, bits: int) -> None:
    if position != bits:
        raise CorruptMessage("bits are left over after the last coordinate")


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
        As for ``encode``.
    full : bool
        In each bucket of positive norm some level must reach ``most``.

    Raises
    ------
    CorruptMessage
        For anything that ``encode`` does not write.
    """
    out, state = (np.zeros if code == "sparse" else np.empty)(d, np.float32), np.array(START)
    _check(_run(payload.cpu().numpy(), bits, state, step, code, most, full, out), most)
    _finish(int(state[0]), bits)
    return torch.from_numpy(out).to(payload.device)


class Reader:
    """``decode`` of runs that follow one another.

    Parameters
    ----------
    payload : ndarray
        uint8, what ``encode`` gave.
    bits : int
        Its length.
    code : {"dense", "flag", "sparse"}
        As for ``encode``.
    most : int
        As for ``encode``.
    full : bool
        As for ``decode``.
    """

    def __init__(self, payload: np.ndarray, bits: int, code: str, most: int, full: bool) -> None:
        self._payload, self._bits, self._code, self._most, self._full = payload, bits, code, most, full
        self._state, self._bad = np.array(START), 0

    def read(self, part: slice, step: int, d: int, beyond: int) -> np.ndarray:
        """Return the coordinates of a run: float32.

        Parameters
        ----------
        part : slice
            Its place.
        step : int
            Coordinates of a bucket, or those of the run if one bucket goes on behind it.
        d : int
            Number of coordinates of all runs.
        beyond : int
            Coordinates of the bucket behind the run.
        """
        out = np.zeros(part.stop - part.start, np.float32)

        def read(window: np.ndarray, position: int, there: int) -> int:
            self._state[0] = position
            self._bad = _run(window, there, self._state, step, self._code, self._most, self._full, out, beyond)
            return -1 if self._bad else int(self._state[0])

        self._state[0] = in_windows(self._payload, self._bits, int(self._state[0]), out.size / d, read)
        _check(part.start + self._bad if self._bad else 0, self._most)
        return out

    def finish(self) -> None:
        """Raise CorruptMessage if bits are left over."""
        _finish(int(self._state[0]), self._bits)
