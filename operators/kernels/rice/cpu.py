"""Rice codes of one long vector and of many short ones, in numba: encoders and decoders."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import FIELDS, flush, padded, peek, read_field, write_bits, write_fields
from ...compilation import jit
from ...message import CorruptMessage, Messages
from . import MOST, PARAMETER_BITS, VALUE_BITS

# The sparse vector's code compiled for the CPU.


@jit
def _cost(gaps, r):
    """Return bits of the gaps at parameter r."""
    total = gaps.size * (1 + r)
    for i in range(gaps.size):
        total += gaps[i] >> r
    return total


@jit
def best_parameter(gaps, span):
    """Return (r, bits) of the least r that minimises the cost, which is unimodal in r; ``span`` is a start for d."""
    r, ratio = 0, span // max(gaps.size, 1)
    while ratio > 2 and r < MOST:
        ratio >>= 1
        r += 1
    bits = _cost(gaps, r)
    while r < MOST:
        after = _cost(gaps, r + 1)
        if after >= bits:
            break
        r, bits = r + 1, after
    while r > 0:
        before = _cost(gaps, r - 1)
        if before > bits:
            break
        r, bits = r - 1, before
    return r, bits


@jit
def _gap_fields(gaps, start, r, values, widths):
    """Return fields of the gaps from ``start`` on, as many as fit: (how many, next gap).  No gap has half of them."""
    m, low, i = 0, np.int64((1 << r) - 1), start
    while i < gaps.size and m + 2 + (gaps[i] >> r) // 32 <= FIELDS:
        ones = gaps[i] >> r
        while ones >= 32:
            values[m], widths[m] = np.uint64(0xFFFFFFFF), 32
            m, ones = m + 1, ones - 32
        values[m], widths[m] = np.uint64((2 << ones) - 2), ones + 1
        values[m + 1], widths[m + 1] = np.uint64(gaps[i] & low), r
        m, i = m + 2, i + 1
    return m, i


@jit
def _write(head, head_bits, parameter_bits, gaps, r, patterns, out):
    state = write_bits(out, (np.uint64(0), 0, 0), head, head_bits)
    values, widths = np.empty(FIELDS, np.uint64), np.empty(FIELDS, np.int64)
    if parameter_bits:
        state = write_bits(out, state, r, parameter_bits)
    i = 0
    while i < gaps.size:
        ones = gaps[i] >> r
        while ones >= 32 * (FIELDS - 2):  # a quotient that fills a buffer by itself
            state = write_bits(out, state, 0xFFFFFFFF, 32)
            ones -= 32
        if ones < gaps[i] >> r:
            rest = np.array([(ones << r) | (gaps[i] & ((1 << r) - 1))])
            m, _ = _gap_fields(rest, 0, r, values, widths)
            i += 1
        else:
            m, i = _gap_fields(gaps, i, r, values, widths)
        state = write_fields(out, state, values, widths, m)
    widths[:] = VALUE_BITS
    for start in range(0, patterns.size, FIELDS):
        m = min(FIELDS, patterns.size - start)
        for j in range(m):
            values[j] = patterns[start + j]
        state = write_fields(out, state, values, widths, m)
    flush(out, state)


def gaps_of(index: np.ndarray) -> np.ndarray:
    """Return how many coordinates are left out before each one of the support, int64."""
    gaps = index.copy()
    gaps[1:] -= index[:-1] + 1
    return gaps


def pack(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int = 0, head_bits: int = 0
) -> tuple[torch.Tensor, int]:
    """Write gap by gap."""
    k = index.numel()
    gaps = gaps_of(index.numpy()) if k < d else np.empty(0, np.int64)
    r, support_bits = best_parameter(gaps, d) if gaps.size else (0, 0)
    parameter_bits = PARAMETER_BITS if gaps.size else 0
    bits = head_bits + parameter_bits + int(support_bits) + VALUE_BITS * k
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(head, head_bits, parameter_bits, gaps, r, values.numpy().view(np.uint32), out)
    return torch.from_numpy(out), bits


def gap_string(gaps: np.ndarray, r: int) -> tuple[np.ndarray, int]:
    """Return (bytes, bits) of some gaps at a parameter, without the parameter.

    Parameters
    ----------
    gaps : ndarray
        int64, shape (n,).
    r : int
        The parameter.
    """
    bits = int(_cost(gaps, r))
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(0, 0, 0, gaps, r, np.empty(0, np.uint32), out)
    return out, bits


# The decoder of sparse vectors, on the CPU for payloads on any device: codes of varying length follow one another.


@jit
def _read(padded, bits, r, d, stop, state, index):
    """Fill ``index`` with increasing positions below d up to the first that is not below ``stop``.

    ``state`` is (bit position, latest coordinate), changed unless the stream is corrupt; returns how many positions, -1
    then.
    """
    position, last, j = state[0], state[1], 0
    while j < index.size and last < stop:
        quotient = 0
        while True:
            if position >= bits:
                return -1
            if not peek(padded, position) >> np.uint64(63):
                break
            quotient += 1
            position += 1
            if (quotient << r) >= d:
                return -1
        position += 1
        if position + r > bits:
            return -1
        low = np.int64(peek(padded, position) >> np.uint64(64 - r)) if r > 0 else 0
        position += r
        last += (quotient << r) + low + 1
        if last >= d:
            return -1
        index[j] = last
        j += 1
    state[0], state[1] = position, last
    return j


@jit
def _read_values(padded, position, patterns):
    for j in range(patterns.size):
        patterns[j] = np.uint32(peek(padded, position) >> np.uint64(32))
        position += VALUE_BITS


def unpack(payload: torch.Tensor, bits: int, k: int, d: int, position: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (index, values) of ``pack`` after a head that ends at ``position``, on the payload's device.

    Parameters
    ----------
    payload : tensor
        uint8, what ``pack`` gave.
    bits : int
        Its length.
    k : int
        Number of values.
    d : int
        Number of coordinates.
    position : int, optional
        Where the support begins, in bits.

    Raises
    ------
    CorruptMessage
        For anything that ``pack`` does not write.
    """
    support_at = position + (PARAMETER_BITS if k < d else 0)
    if bits < support_at + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; got {bits}")
    buffer, index = padded(payload.cpu().numpy()), np.arange(k)
    if k < d:
        r = int(read_field(buffer, position, PARAMETER_BITS))
        state = np.array([support_at, -1])
        if _read(buffer, bits, r, d, d, state, index) < 0:
            raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
        position = int(state[0])
        if best_parameter(gaps_of(index), d)[0] != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    if bits != position + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; {bits - position} remain")
    values = read_values(buffer, position, k)
    return torch.from_numpy(index).to(payload.device), torch.from_numpy(values).to(payload.device)


def read_run(window: np.ndarray, there: int, r: int, d: int, stop: int, state: np.ndarray, index: np.ndarray) -> int:
    """Fill ``index`` from a window on the gaps up to the first position that is not below ``stop``; returns how many.

    Parameters
    ----------
    window : ndarray
        uint8.
    there : int
        How many of its bits may be read.
    r : int
        The parameter.
    d : int
        Number of coordinates.
    stop : int
        End of the run.
    state : ndarray
        int64: bit position in the window and latest coordinate, -1 at first; changed unless the result is -1, for a
        stream that is corrupt or goes on behind the window.
    index : ndarray
        int64, room for as many positions as may come.
    """
    return int(_read(padded(window), there, r, d, stop, state, index))


def read_values(window: np.ndarray, position: int, count: int) -> np.ndarray:
    """Return values from a bit position on: float32, shape (count,).

    Parameters
    ----------
    window : ndarray
        uint8, a message or a part of it that holds them.
    position : int
        Bit position.
    count : int
        How many.

    Raises
    ------
    CorruptMessage
        If one is NaN or infinite.
    """
    patterns = np.empty(count, np.uint32)
    _read_values(padded(window), position, patterns)
    values = patterns.view(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return values


# Sparse vectors of a batch in Rice code: one bit string per row, by the loops for one vector.


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


def pack_rows(index: np.ndarray, values: np.ndarray, d: int) -> Messages:
    """Return the message of every row, as ``pack`` writes it.

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


def unpack_rows(messages: Messages, k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (positions, values) of every row: int64 and float32, shape (m, k), as ``unpack`` reads them.

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
        For a message that ``pack_rows`` does not write.
    """
    index = np.tile(np.arange(k), (len(messages), 1))
    patterns, gaps, state = np.empty((len(messages), k), np.uint32), np.empty(k, np.int64), np.empty(2, np.int64)
    payload = np.concatenate([messages.payload.numpy(), np.zeros(8, np.uint8)])
    bad = _read_rows(payload, messages.ends, messages.bits, d, state, index, patterns, gaps)
    values = patterns.view(np.float32)
    if bad or not np.isfinite(values).all():
        raise CorruptMessage("a row has no support that an encoder chooses, or a value that is NaN or infinite")
    return index, values
