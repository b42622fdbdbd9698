"""The coder of levels compiled for the CPU, by tables.

The bits of each signed level are looked up, and two or four of them are joined into one field where they fit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from ...bits import elias
from ...bits.bitstream import FIELDS, flush, write_bits, write_fields
from ...bits.writer import BitWriter
from ...compilation import jit
from ..threads import shared

NORM_BITS = 32
AT_ONCE = 4  # levels of one field
DENSE, SPARSE, FLAG = 0, 1, 2  # also the bits before a level
NUMBERS = {"dense": DENSE, "sparse": SPARSE, "flag": FLAG}


@lru_cache(maxsize=32)
def _encoder(most: int, code: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bits of level n with its sign and flag at index n + most, and how many they are."""
    levels = np.arange(-most, most + 1)
    values, widths = elias.build_each(abs(levels) + 1 if code == DENSE else np.maximum(abs(levels), 1))
    negative, present = (levels < 0).astype(np.uint64), levels != 0
    if code == DENSE:
        return (values << present.astype(np.uint64)) | negative, widths + present
    flag = np.uint64(2 if code == FLAG else 0)
    codes = ((flag | negative) << widths.astype(np.uint64)) | values
    widths = widths + (2 if code == FLAG else 1)
    if code == FLAG:
        codes[most], widths[most] = 0, 1
    return codes, widths


@jit
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


@jit
def _write(levels, patterns, step, begins, most, codes, widths, parts, values, lengths, out):
    """Return dense and flag form; returns the bits."""
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
                m = _joined(piece, most, codes, widths, 4, values, lengths)
            elif parts == 2:
                m = _joined(piece, most, codes, widths, 2, values, lengths)
            else:
                m = _joined(piece, most, codes, widths, 1, values, lengths)
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
def _write_sparse(levels, patterns, step, begins, since, ends, most, codes, widths, values, lengths, out):
    """Return sparse form; returns the bits."""
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
    codes, widths = _encoder(most, NUMBERS[code])
    values, lengths = np.empty(3 * FIELDS, np.uint64), np.empty(3 * FIELDS, np.int64)  # of one piece
    widest, head = int(widths.max()), NORM_BITS * patterns.size
    if code == "sparse":  # a gap's code has at most 64 bits
        room = head + 64 * patterns.size + (64 + widest) * int(np.count_nonzero(levels))
        out = np.empty(room // 8 + 8, np.uint8)
        bits = _write_sparse(levels, patterns, step, begins, since, ends, most, codes, widths, values, lengths, out)
    else:
        parts = next(p for p in (4, 2, 1) if p * widest <= 32)
        out = np.empty((head + widest * levels.size) // 8 + 8, np.uint8)  # only written pages are ever there
        bits = _write(levels, patterns, step, begins, most, codes, widths, parts, values, lengths, out)
    return out[: (int(bits) + 7) // 8], int(bits)
