"""Levels of a batch in Elias code: one bit string per row, by the loops for one vector."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import SPARE_WORDS
from ...compilation import jit
from ...message import CorruptMessage, Messages
from .cpu import FIELDS, NORM_BITS, NUMBERS, SPARSE, _encoder, _write, _write_sparse
from .decoder import START, _decoder, _read, _read_sparse


@jit
def _write_rows(levels, patterns, step, whole, since, sparse, most, codes, widths, parts, values, lengths, out, bits):
    """Write row after row, each from a whole byte on; return the number of bytes."""
    position = 0
    for row in range(bits.size):
        to = out[position:]
        if sparse:
            bits[row] = _write_sparse(
                levels[row], patterns[row], step, whole, since, whole, most, codes, widths, values, lengths, to
            )
        else:
            bits[row] = _write(levels[row], patterns[row], step, whole, most, codes, widths, parts, values, lengths, to)
        position += (bits[row] + 7) >> 3
    return position


def encode(levels: np.ndarray, norms: np.ndarray, step: int, code: str, most: int) -> Messages:
    """Return the message of every row, as ``cpu.encode`` writes it.

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
    codes, widths = _encoder(most, NUMBERS[code])
    widest, m, buckets = int(widths.max()), *norms.shape
    longest = (64 + widest) * np.count_nonzero(levels) if code == "sparse" else widest * levels.size
    out = np.empty((m * buckets * (NORM_BITS + 64) + longest) // 8 + 8 * m + 8, np.uint8)
    values, lengths = np.empty(3 * FIELDS, np.uint64), np.empty(3 * FIELDS, np.int64)
    bits, parts = np.empty(m, np.int64), next(p for p in (4, 2, 1) if code == "sparse" or p * widest <= 32)
    patterns, sparse = norms.view(np.uint32), code == "sparse"
    end = _write_rows(levels, patterns, step, True, 0, sparse, most, codes, widths, parts, values, lengths, out, bits)
    return Messages(torch.from_numpy(out[:end].copy()), bits)


@jit
def _read_rows(
    payload, ends, bits, begin, step, code, most, full, width, counts, used, tops, symbols, words, state, out
):
    """Read row after row into ``out`` (zeroed); return 0, or the number of a corrupt row plus 1."""
    start = 0
    for row in range(bits.size):
        part = payload[start : ends[row]]
        room = words[: (part.size + 3) // 4 + SPARE_WORDS]
        for i in range(room.size):
            room[i] = np.uint32(0)
        for i in range(state.size):
            state[i] = begin[i]
        if code == SPARSE:
            bad = _read_sparse(part, room, bits[row], state, 0, step, most, full, out[row])
        else:
            bad = _read(
                part, room, bits[row], state, 0, code, step, most, full, width, counts, used, tops, symbols, out[row]
            )
        if bad != 0 or state[0] != bits[row]:
            return row + 1
        start = ends[row]
    return 0


def decode(messages: Messages, d: int, step: int, code: str, most: int, full: bool) -> np.ndarray:
    """Return the decoded rows: float32, shape (m, d), as ``decoder.decode`` reads them.

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
        For a message that ``encode`` does not write.
    """
    number, out = NUMBERS[code], np.zeros((len(messages), d), np.float32)
    words = np.zeros(-(-int(messages.nbytes.max()) // 4) + SPARE_WORDS, np.uint32)
    begin, state = np.array(START), np.array(START)
    table, payload = _decoder(number, most), messages.payload.numpy()
    bad = _read_rows(payload, messages.ends, messages.bits, begin, step, number, most, full, *table, words, state, out)
    if bad:
        raise CorruptMessage(f"row {bad - 1} has a bucket without norm, or without levels of 0 .. {most}")
    return out
