"""Elias codes of one long vector and of many short ones, in numba: encoders and decoders."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from ...bits import elias
from ...bits.bitstream import FIELDS, SPARE_WORDS, BitWriter, flush, in_windows, set_words, write_bits, write_fields
from ...compilation import jit
from ...message import CorruptMessage, Messages
from ..threads import shared
from . import NORM_BITS, Code

# The coder of levels compiled for the CPU, by tables.
#
# The bits of each signed level are looked up, and two or four of them are joined into one field where they fit.

AT_ONCE = 4  # levels of one field
DENSE, SPARSE, FLAG = 0, 1, 2  # also the bits before a level
NUMBERS = {"dense": DENSE, "sparse": SPARSE, "flag": FLAG}


@lru_cache(maxsize=32)
def _encoder(most: int, code: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return bits of level n with its sign and flag at index n + most, how many they are, and the levels of a field."""
    levels = np.arange(-most, most + 1)
    values, widths = elias.build_each(abs(levels) + 1 if code == DENSE else np.maximum(abs(levels), 1))
    negative, present = (levels < 0).astype(np.uint64), levels != 0
    if code == DENSE:
        return _with_parts((values << present.astype(np.uint64)) | negative, widths + present)
    flag = np.uint64(2 if code == FLAG else 0)
    codes = ((flag | negative) << widths.astype(np.uint64)) | values
    widths = widths + (2 if code == FLAG else 1)
    if code == FLAG:
        codes[most], widths[most] = 0, 1
    return _with_parts(codes, widths)


def _with_parts(codes: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    return codes, widths, next((p for p in (4, 2) if p * widths.max() <= 32), 1)


@jit
def _joined(levels, most, table, parts, fields):
    """Write fields of ``parts`` levels each, and of one each for what remains; return how many."""
    codes, widths, _ = table
    values, lengths = fields
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


@jit
def _write(levels, patterns, step, edges, most, table, fields, out):
    """Write dense and flag form; return the bits.

    Parameters
    ----------
    edges
        Of a run: whether a bucket begins with it, the coordinates since the latest level that is not 0, and whether a
        bucket ends with it.
    table
        See ``_encoder``.
    fields
        Room for the values and the lengths of a piece's fields.
    """
    begins, parts = edges[0], table[2]
    values, lengths = fields
    state = (np.uint64(0), np.int64(0), np.int64(0))  # literals would be compiled apart
    for b in range(patterns.size):
        if begins:
            state = write_bits(out, state, patterns[b], np.int64(NORM_BITS))
        if patterns[b] == 0:
            continue
        stop = min((b + 1) * step, levels.size)
        for start in range(b * step, stop, FIELDS):
            piece = levels[start : min(start + FIELDS, stop)]
            if parts == 4:  # written out so that each call has a fixed number
                m = _joined(piece, most, table, 4, fields)
            elif parts == 2:
                m = _joined(piece, most, table, 2, fields)
            else:
                m = _joined(piece, most, table, 1, fields)
            state = write_fields(out, state, values, lengths, m)
    bits = 8 * state[2] + state[1]
    flush(out, state)
    return bits


@jit
def _gap(gap, values, lengths, m):
    """Return the two fields of one gap from index m; returns the next index."""
    value, width = elias.build(gap)
    values[m], lengths[m] = value >> np.uint64(32), max(width - 32, 0)
    values[m + 1], lengths[m + 1] = value & np.uint64(0xFFFFFFFF), min(width, 32)
    return m + 2


@jit
def _write_sparse(levels, patterns, step, edges, most, table, fields, out):
    """Write sparse form, as ``_write``; return the bits."""
    begins, since, ends = edges
    codes, widths, _ = table
    values, lengths = fields
    state = (np.uint64(0), np.int64(0), np.int64(0))
    for b in range(patterns.size):
        if begins:
            state = write_bits(out, state, patterns[b], np.int64(NORM_BITS))
        if patterns[b] == 0:
            continue
        begin, stop, last = b * step, min((b + 1) * step, levels.size), b * step - 1 - since
        for start in range(begin, stop, FIELDS):
            m = np.int64(0)
            for i in range(start, min(start + FIELDS, stop)):
                n = levels[i]
                if n != 0:
                    m = _gap(i - last, values, lengths, m)
                    values[m], lengths[m] = codes[n + most], widths[n + most]
                    m, last = m + 1, i
            state = write_fields(out, state, values, lengths, m)
        if ends:
            state = write_fields(out, state, values, lengths, _gap(stop - last, values, lengths, np.int64(0)))
    bits = 8 * state[2] + state[1]
    flush(out, state)
    return bits


def encode(levels: torch.Tensor, norms: torch.Tensor, step: int, code: str, most: int) -> tuple[torch.Tensor, int]:
    """Write code by code into a buffer that holds the longest ones."""
    signed, scales, d = levels.numpy(), norms.numpy(), levels.numel()
    unit = step if step < d else 1

    def work(start: int, stop: int) -> tuple[np.ndarray, int]:
        since = int(_since(signed, start)) if unit == 1 else 0
        part, ends = scales[start // step : -(-stop // step)], stop == d or unit == step
        width = min(step, stop - start)
        string, bits = encode_run(
            signed[start:stop], part, width, code, most, begins=start == 0 or unit == step, since=since, ends=ends
        )
        return string, bits

    strings = shared(d, unit, work)
    if len(strings) == 1:
        return torch.from_numpy(strings[0][0].copy()), strings[0][1]
    writer = BitWriter()
    for string, bits in strings:
        writer.append(string, bits)
    payload, total = writer.finish()
    return torch.from_numpy(payload), total


@jit
def _since(levels, start):
    """Return how many coordinates before ``start`` follow the latest level that is not 0; all if there is none."""
    i = start
    while i > 0 and levels[i - 1] == 0:
        i -= 1
    return start - i


def encode_run(
    levels: np.ndarray,
    norms: np.ndarray,
    step: int,
    code: str,
    most: int,
    *,
    begins: bool = True,
    since: int = 0,
    ends: bool = True,
) -> tuple[np.ndarray, int]:
    """Return ``encode`` of whole buckets, or of a run of one: a view of a longer buffer.

    Parameters
    ----------
    levels : ndarray
        As for ``encode``.
    norms : ndarray
        As for ``encode``; of a run, the norm of its one bucket.
    step : int
        Coordinates of a bucket, all of those of the run.
    code : {"dense", "sparse", "flag"}
        The form.
    most : int
        As for ``encode``.
    begins : bool, optional
        Whether a bucket begins with the run: its norm is sent.
    since : int, optional
        How many coordinates of the bucket before the run follow its latest level that is not 0.
    ends : bool, optional
        Whether a bucket ends with the run.
    """
    patterns = norms.view(np.uint32)
    table, edges, head = _encoder(most, NUMBERS[code]), (begins, since, ends), NORM_BITS * patterns.size
    fields = np.empty(3 * FIELDS, np.uint64), np.empty(3 * FIELDS, np.int64)  # of one piece
    widest = int(table[1].max())
    if code == "sparse":  # a gap's code has at most 64 bits
        room = head + 64 * patterns.size + (64 + widest) * int(np.count_nonzero(levels))
        out = np.empty(room // 8 + 8, np.uint8)
        bits = _write_sparse(levels, patterns, step, edges, most, table, fields, out)
    else:
        out = np.empty((head + widest * levels.size) // 8 + 8, np.uint8)  # only written pages are ever there
        bits = _write(levels, patterns, step, edges, most, table, fields, out)
    return out[: (int(bits) + 7) // 8], int(bits)


# The decoder of levels, on the CPU for payloads on any device: codes of varying length follow one another.
#
# The next twelve or fifteen bits are looked up, which hold up to four levels.

LEVELS_PER_ENTRY = 4  # levels of one entry of a table
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
        while counts[entry] < LEVELS_PER_ENTRY:
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
    tops, symbols = np.zeros(1 << width, np.int16), np.zeros((1 << width, LEVELS_PER_ENTRY), np.int16)
    _fill(width, code, most, counts, used, tops, symbols)
    return width, counts, used, tops, symbols


@jit
def _read(payload, words, bits, state, beyond, form, table, out):
    """Read dense and flag form; return 0, or the first coordinate of a corrupt bucket plus 1.

    ``state`` is (position, whether a bucket begins, its norm's pattern, its largest level), changed unless it returns
    so; ``beyond`` coordinates of the last bucket come in later runs.  ``form`` is (code, coordinates of a bucket,
    largest level, whether each bucket reaches it), and ``table`` what ``_decoder`` returns.
    """
    code, step, most, full = form
    width, counts, used, tops, symbols = table
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
            if count > 0 and i + LEVELS_PER_ENTRY <= stop and position + width <= bits:
                for k in range(LEVELS_PER_ENTRY):  # those beyond the count are overwritten
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
def _read_sparse(payload, words, bits, state, beyond, form, out):
    """Read sparse form into ``out`` (zeroed); return as ``_read``, with a fifth number in ``state``.

    It is where, counted from the end of the run, the next level that is not 0 stands, or the bucket ends.
    """
    _, step, most, full = form
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
    words, form = np.zeros(-(-payload.size // 4) + SPARE_WORDS, np.uint32), (NUMBERS[code], step, most, full)
    if code == "sparse":
        return int(_read_sparse(payload, words, bits, state, beyond, form, out))
    return int(_read(payload, words, bits, state, beyond, form, _decoder(NUMBERS[code], most), out))


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


# Levels of a batch in Elias code: one bit string per row, by the loops for one vector.


@jit
def _write_rows(levels, patterns, step, edges, sparse, most, table, fields, out, bits):
    """Write row after row, each from a whole byte on; return the number of bytes."""
    position = 0
    for row in range(bits.size):
        to = out[position:]
        if sparse:
            bits[row] = _write_sparse(levels[row], patterns[row], step, edges, most, table, fields, to)
        else:
            bits[row] = _write(levels[row], patterns[row], step, edges, most, table, fields, to)
        position += (bits[row] + 7) >> 3
    return position


def encode_rows(levels: np.ndarray, norms: np.ndarray, step: int, code: str, most: int) -> Messages:
    """Return the message of every row, as ``encode`` writes it.

    Parameters
    ----------
    levels : ndarray, int32, shape (m, d)
        Signed levels.
    norms : ndarray, float32, shape (m, ceil(d/step))
        Norms of the buckets.
    step : int
        Coordinates of a bucket.
    code : {"dense", "sparse", "flag"}
        The form.
    most : int
        Largest level.
    """
    table, sparse = _encoder(most, NUMBERS[code]), code == "sparse"
    widest, m, buckets = int(table[1].max()), *norms.shape
    longest = (64 + widest) * np.count_nonzero(levels) if sparse else widest * levels.size
    out = np.empty((m * buckets * (NORM_BITS + 64) + longest) // 8 + 8 * m + 8, np.uint8)
    fields, bits = (np.empty(3 * FIELDS, np.uint64), np.empty(3 * FIELDS, np.int64)), np.empty(m, np.int64)
    end = _write_rows(levels, norms.view(np.uint32), step, (True, 0, True), sparse, most, table, fields, out, bits)
    return Messages(torch.from_numpy(out[:end].copy()), bits)


@jit
def _read_rows(payload, ends, bits, begin, form, table, words, state, out):
    """Read row after row into ``out`` (zeroed); return 0, or the number of a corrupt row plus 1."""
    start = 0
    for row in range(bits.size):
        part = payload[start : ends[row]]
        room = words[: (part.size + 3) // 4 + SPARE_WORDS]
        for i in range(room.size):
            room[i] = np.uint32(0)
        for i in range(state.size):
            state[i] = begin[i]
        if form[0] == SPARSE:
            bad = _read_sparse(part, room, bits[row], state, 0, form, out[row])
        else:
            bad = _read(part, room, bits[row], state, 0, form, table, out[row])
        if bad != 0 or state[0] != bits[row]:
            return row + 1
        start = ends[row]
    return 0


def decode_rows(messages: Messages, d: int, step: int, code: str, most: int, full: bool) -> np.ndarray:
    """Return the decoded rows: float32, shape (m, d), as ``decode`` reads them.

    Parameters
    ----------
    messages : Messages
        The batch.
    d : int
        Number of coordinates of a row.
    step : int
        Coordinates of a bucket.
    code : {"dense", "sparse", "flag"}
        The form.
    most : int
        Largest level.
    full : bool
        In each bucket of positive norm some level must reach ``most``.

    Raises
    ------
    CorruptMessage
        For a message that ``encode_rows`` does not write.
    """
    form, out = (NUMBERS[code], step, most, full), np.zeros((len(messages), d), np.float32)
    words = np.zeros(-(-int(messages.nbytes.max()) // 4) + SPARE_WORDS, np.uint32)
    begin, state, table = np.array(START), np.array(START), _decoder(NUMBERS[code], most)
    bad = _read_rows(messages.payload.numpy(), messages.ends, messages.bits, begin, form, table, words, state, out)
    if bad:
        raise CorruptMessage(f"row {bad - 1} has a bucket without norm, or without levels of 0 .. {most}")
    return out
