"""The sparse vector's code compiled for the CPU."""

from __future__ import annotations

import numba
import numpy as np
import torch

from ...bits.bitstream import FIELDS, flush, padded, peek, read_field, write_bits, write_fields
from ...message import CorruptMessage

PARAMETER_BITS, VALUE_BITS, MOST = 5, 32, 31


@numba.njit(cache=True, nogil=True)
def _cost(gaps, r):
    """Return bits of the gaps at parameter r."""
    total = gaps.size * (1 + r)
    for i in range(gaps.size):
        total += gaps[i] >> r
    return total


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _write(head, head_bits, gaps, r, patterns, out):
    state = write_bits(out, (np.uint64(0), 0, 0), head, head_bits)
    values, widths = np.empty(FIELDS, np.uint64), np.empty(FIELDS, np.int64)
    if gaps.size:
        state = write_bits(out, state, r, PARAMETER_BITS)
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


@numba.njit(cache=True, nogil=True)
def _read(padded, position, bits, r, d, index):
    """Fill ``index`` with increasing positions below d; returns the next bit position, or -1 if corrupt."""
    last = -1
    for j in range(index.size):
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
    return position


@numba.njit(cache=True, nogil=True)
def _read_values(padded, position, patterns):
    for j in range(patterns.size):
        patterns[j] = np.uint32(peek(padded, position) >> np.uint64(32))
        position += VALUE_BITS


def pack(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int = 0, head_bits: int = 0
) -> tuple[torch.Tensor, int]:
    """Write gap by gap."""
    k = index.numel()
    gaps = np.diff(index.numpy(), prepend=-1) - 1 if k < d else np.empty(0, np.int64)
    r, support_bits = best_parameter(gaps, d) if gaps.size else (0, 0)
    bits = head_bits + (PARAMETER_BITS if gaps.size else 0) + int(support_bits) + VALUE_BITS * k
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(head, head_bits, gaps, r, values.numpy().view(np.uint32), out)
    return torch.from_numpy(out), bits


def unpack(payload: torch.Tensor, bits: int, k: int, d: int, position: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Read gap by gap."""
    support_at = position + (PARAMETER_BITS if k < d else 0)
    if bits < support_at + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; got {bits}")
    buffer, index = padded(payload.numpy()), np.arange(k)
    if k < d:
        r = int(read_field(buffer, position, PARAMETER_BITS))
        position = int(_read(buffer, support_at, bits, r, d, index))
        if position < 0:
            raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
        if best_parameter(np.diff(index, prepend=-1) - 1, d)[0] != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    if bits != position + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; {bits - position} remain")
    patterns = np.empty(k, np.uint32)
    _read_values(buffer, position, patterns)
    values = patterns.view(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return torch.from_numpy(index), torch.from_numpy(values)
