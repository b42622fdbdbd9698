"""The rotation compiled for one CPU thread: every sum happens in a buffer that stays in the cache.

A buffer takes 2^14 contiguous coordinates through their first fourteen stages.  Later stages join coordinates at
large distances: for them 2^k rows at that distance, a few coordinates wide, are gathered into the buffer, taken
through k <= 7 stages and written back, so that memory is passed over two or three times, not log2 d times.
"""

from __future__ import annotations

import numba
import numpy as np
import torch

from . import factor, part_starts, transform_length, words_per_part

BUFFER = 16384  # coordinates: 64 KiB
ROWS_LOG2 = 7  # at most in a buffer, so that copies of its rows are long enough to be fast


@numba.njit(cache=True, nogil=True, inline="never")
def _flip(v, words, s):
    """v_i times -s where bit i of the words is set, times +s elsewhere."""
    twice = s + s
    whole = v.size >> 5
    for k in range(whole):
        word, row = words[k], v[32 * k : 32 * k + 32]
        for j in range(32):
            row[j] *= s - twice * np.float32((word >> np.uint32(j)) & np.uint32(1))
    for i in range(32 * whole, v.size):
        v[i] *= s - twice * np.float32((words[whole] >> np.uint32(i & 31)) & np.uint32(1))


@numba.njit(nogil=True, inline="never")
def _stages(v, h):
    """The stages of distance h, 2h, .., v.size/2, two at a time; slices tell the compiler that nothing overlaps."""
    n = v.size
    while 4 * h <= n:
        for s in range(0, n, 4 * h):
            a, b = v[s : s + h], v[s + h : s + 2 * h]
            c, d = v[s + 2 * h : s + 3 * h], v[s + 3 * h : s + 4 * h]
            for j in range(h):
                p, q, r, t = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
                a[j], b[j], c[j], d[j] = p + r, q + t, p - r, q - t
        h *= 4
    if h < n:
        for s in range(0, n, 2 * h):
            a, b = v[s : s + h], v[s + h : s + 2 * h]
            for j in range(h):
                a[j], b[j] = a[j] + b[j], a[j] - b[j]


@numba.njit(nogil=True, inline="never")
def _first_stages(v):
    """The stages of distance 1, 2 and 4; v.size is a multiple of 8."""
    for s in range(0, v.size, 8):
        a, b, c, d = v[s] + v[s + 1], v[s] - v[s + 1], v[s + 2] + v[s + 3], v[s + 2] - v[s + 3]
        e, f, g, h = v[s + 4] + v[s + 5], v[s + 4] - v[s + 5], v[s + 6] + v[s + 7], v[s + 6] - v[s + 7]
        a, b, c, d = a + c, b + d, a - c, b - d
        e, f, g, h = e + g, f + h, e - g, f - h
        v[s], v[s + 1], v[s + 2], v[s + 3] = a + e, b + f, c + g, d + h
        v[s + 4], v[s + 5], v[s + 6], v[s + 7] = a - e, b - f, c - g, d - h


@numba.njit(cache=True, nogil=True)
def _far_stages(v, h, rows, buffer):
    """The stages of distance h, 2h, .., rows h/2."""
    width = buffer.size // rows
    for start in range(0, v.size, rows * h):
        for column in range(start, start + h, width):
            for r in range(rows):
                near, far = buffer[r * width : (r + 1) * width], v[column + r * h : column + r * h + width]
                for j in range(width):
                    near[j] = far[j]
            _stages(buffer, width)
            for r in range(rows):
                near, far = buffer[r * width : (r + 1) * width], v[column + r * h : column + r * h + width]
                for j in range(width):
                    far[j] = near[j]


@numba.njit(cache=True, nogil=True)
def _near_stages(v, words, s):
    """The stages inside blocks of a buffer's size; if there are words, signs and s first, while a block is at hand."""
    near = min(v.size, BUFFER)
    for start in range(0, v.size, near):
        block = v[start : start + near]
        if words.size > 0:
            _flip(block, words[start >> 5 :], s)
        if near < 8:
            _stages(block, 1)
        else:
            _first_stages(block)
            _stages(block, 8)


def _transform(v: np.ndarray, words: np.ndarray, s: np.float32, buffer: np.ndarray) -> None:
    """H v without its factor, v.size a power of two; first signs and s if there are words."""
    _near_stages(v, words, s)
    h = min(v.size, BUFFER)
    while h < v.size:
        stages = (v.size // h).bit_length() - 1
        passes = -(-stages // ROWS_LOG2)
        rows = 1 << -(-stages // passes)
        _far_stages(v, h, rows, buffer)
        h *= rows


def rotate(x: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Transform part by part, stage by stage within the cache."""
    return _run(x, words, rounds, True)


def unrotate(z: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Undo the parts in reverse."""
    return _run(z, words, rounds, False)


def _run(x: torch.Tensor, words: torch.Tensor, rounds: int, forwards: bool) -> torch.Tensor:
    d, out = x.numel(), x.numpy().copy()
    p, n, s, starts = transform_length(d), words_per_part(d), np.float32(factor(d)), part_starts(d) * rounds
    signs, buffer = words.numpy().view(np.uint32), np.empty(BUFFER, np.float32)
    parts = [(out[start : start + p], signs[number * n : (number + 1) * n]) for number, start in enumerate(starts)]
    for part, minus in parts if forwards else reversed(parts):
        if forwards:
            _transform(part, minus, s, buffer)
        else:
            _transform(part, signs[:0], s, buffer)
            _flip(part, minus, s)
    return torch.from_numpy(out)
