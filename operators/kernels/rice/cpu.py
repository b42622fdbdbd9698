"""The sparse vector's code compiled for the CPU."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import FIELDS, flush, write_bits, write_fields
from ...compilation import jit

PARAMETER_BITS, VALUE_BITS, MOST = 5, 32, 31


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
