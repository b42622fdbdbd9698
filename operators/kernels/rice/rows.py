"""Sparse vectors of a batch in Rice code: one bit string per row, by the loops for one vector."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import read_field
from ...compilation import jit
from ...message import CorruptMessage, Messages
from .cpu import MOST, PARAMETER_BITS, VALUE_BITS, _write, best_parameter
from .decoder import _read, _read_values


@jit
def _write_rows(index, patterns, d, gaps, out, bits):
    """Write row after row, each from a whole byte on; return the number of bytes."""
    position, k = 0, index.shape[1]
    for row in range(bits.size):
        r, support, head = 0, 0, 0
        if k < d:
            last = -1
            for i in range(k):
                gaps[i], last = index[row, i] - last - 1, index[row, i]
            r, support = best_parameter(gaps, d)
            head = PARAMETER_BITS
        bits[row] = head + support + VALUE_BITS * k
        stop = position + ((bits[row] + 7) >> 3)
        _write(0, 0, head, gaps, r, patterns[row], out[position:stop])
        position = stop
    return position


def pack(index: np.ndarray, values: np.ndarray, d: int) -> Messages:
    """Return the message of every row, as ``cpu.pack`` writes it.

    Parameters
    ----------
    index : ndarray, int64, shape (m, k)
        Increasing positions.
    values : ndarray, float32, shape (m, k)
        Values there.
    d : int
        Number of coordinates of a row.
    """
    m, k = index.shape
    gaps = np.empty(k if k < d else 0, np.int64)
    # the best parameter needs no more bits than r = floor(log2(d/k)): 2 + r + d/(k 2^r) per gap
    r = min(max(d // k, 1).bit_length() - 1, MOST)
    out = np.zeros(m * ((PARAMETER_BITS + k * (1 + r + VALUE_BITS) + (d >> r)) // 8 + 1), np.uint8)
    bits = np.empty(m, np.int64)
    end = _write_rows(index, np.ascontiguousarray(values).view(np.uint32), d, gaps, out, bits)
    return Messages(torch.from_numpy(out[:end].copy()), bits)


@jit
def _read_rows(padded, ends, bits, d, state, index, patterns, gaps):
    """Read row after row; return 0, or the number of a corrupt row plus 1."""
    start, k = 0, index.shape[1]
    for row in range(bits.size):
        part, position, places = padded[start : ends[row] + 8], 0, index[row]
        if bits[row] < (PARAMETER_BITS if k < d else 0) + VALUE_BITS * k:
            return row + 1
        if k < d:
            r = np.int64(read_field(part, 0, PARAMETER_BITS))
            state[0], state[1] = PARAMETER_BITS, -1
            if _read(part, bits[row], r, d, d, state, places) < 0:
                return row + 1
            last = -1
            for i in range(k):
                gaps[i], last = places[i] - last - 1, places[i]
            position = state[0]
            if best_parameter(gaps, d)[0] != r:
                return row + 1
        if bits[row] != position + VALUE_BITS * k:
            return row + 1
        _read_values(part, position, patterns[row])
        start = ends[row]
    return 0


def unpack(messages: Messages, k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (positions, values) of every row: int64 and float32, shape (m, k), as ``decoder.unpack`` reads them.

    Parameters
    ----------
    messages : Messages
        The batch.
    k : int
        Number of values of a row.
    d : int
        Number of coordinates of a row.

    Raises
    ------
    CorruptMessage
        For a message that ``pack`` does not write.
    """
    index = np.tile(np.arange(k), (len(messages), 1))
    patterns, gaps, state = np.empty((len(messages), k), np.uint32), np.empty(k, np.int64), np.empty(2, np.int64)
    payload = np.concatenate([messages.payload.numpy(), np.zeros(8, np.uint8)])
    bad = _read_rows(payload, messages.ends, messages.bits, d, state, index, patterns, gaps)
    values = patterns.view(np.float32)
    if bad or not np.isfinite(values).all():
        raise CorruptMessage("a row has no support that an encoder chooses, or a value that is NaN or infinite")
    return index, values
