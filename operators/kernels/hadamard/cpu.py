"""The rotation compiled for one CPU thread: three or six stages whenever a number is in a register.

A block of up to 2^15 contiguous coordinates goes through all its stages while it is in the cache.  Later stages
join coordinates at large distances: for them 2^k rows at that distance, a few coordinates wide, are taken through
k <= 9 stages in a buffer, so that memory is passed over two or three times, not log2 d times.
"""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ...compilation.simd import hadamard, store, times_signs
from ...compilation.simd import load_8 as load
from ..threads import shared
from . import factor, part_starts, transform_length, words_per_part

BLOCK_LOG2 = 15  # at most, of coordinates that go through their first stages together: 128 KiB
LEAST = 64  # coordinates that the first six stages take
ROWS_LOG2 = 9  # at most in the buffer, a multiple of 3
WIDTH = 128  # coordinates of a row in the buffer: shorter pieces of memory are slow to read


@jit
def _flip(v, words, s):
    """v_i times -s where bit i of the words is set, times +s elsewhere."""
    for i in range(v.size):
        minus_one = (words[i >> 5] >> np.uint32(i & 31)) & np.uint32(1)
        v[i] *= -s if minus_one else s


@jit
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


@jit
def _butterflies(a, b, c, d, e, f, g, h):
    """Three stages between eight rows."""
    a, b, c, d = a + b, a - b, c + d, c - d
    e, f, g, h = e + f, e - f, g + h, g - h
    a, b, c, d = a + c, b + d, a - c, b - d
    e, f, g, h = e + g, f + h, e - g, f - h
    return a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h


@jit
def _signed(value, i, words, s):
    """Coordinates i .. i + 7 times +s or -s by their bits; as they are if there are no words."""
    return times_signs(value, s, words[i >> 5] >> np.uint32(i & 31)) if words.size > 0 else value


@jit
def _mixed(v, i, words, s):
    return hadamard(_signed(load(v, i), i, words, s))


@jit
def _six_stages(x, out, words, s):
    """The stages of distance 1 to 32 from x, times its signs and s if there are words, to ``out``."""
    for i in range(0, out.size, 64):
        a, b = _mixed(x, i, words, s), _mixed(x, i + 8, words, s)
        c, d = _mixed(x, i + 16, words, s), _mixed(x, i + 24, words, s)
        e, f = _mixed(x, i + 32, words, s), _mixed(x, i + 40, words, s)
        g, h = _mixed(x, i + 48, words, s), _mixed(x, i + 56, words, s)
        a, b, c, d, e, f, g, h = _butterflies(a, b, c, d, e, f, g, h)
        store(out, i, a), store(out, i + 8, b), store(out, i + 16, c), store(out, i + 24, d)
        store(out, i + 32, e), store(out, i + 40, f), store(out, i + 48, g), store(out, i + 56, h)


@jit
def _three_stages(source, i, h, target, m, k, width, words, s):
    """Three stages between eight rows of a width: from i, i + h, .. of the source to m, m + k, .. of the target."""
    for j in range(0, width, 8):
        n = i + j
        a, b, c, d = load(source, n), load(source, n + h), load(source, n + 2 * h), load(source, n + 3 * h)
        n += 4 * h
        e, f, g, o = load(source, n), load(source, n + h), load(source, n + 2 * h), load(source, n + 3 * h)
        a, b, c, d, e, f, g, o = _butterflies(a, b, c, d, e, f, g, o)
        n = m + j
        store(target, n, _signed(a, n, words, s)), store(target, n + k, _signed(b, n + k, words, s))
        n += 2 * k
        store(target, n, _signed(c, n, words, s)), store(target, n + k, _signed(d, n + k, words, s))
        n += 2 * k
        store(target, n, _signed(e, n, words, s)), store(target, n + k, _signed(f, n + k, words, s))
        n += 2 * k
        store(target, n, _signed(g, n, words, s)), store(target, n + k, _signed(o, n + k, words, s))


@jit
def _near_stages(x, out, begin, end, size, before, after, s):
    """The stages inside blocks of a size >= 64 from x to ``out``, with the signs and s before or after."""
    none = before[:0]
    for start in range(begin, end, size):
        block, h = out[start : start + size], 64
        _six_stages(x[start : start + size], block, before[start >> 5 :], s)
        while 8 * h <= size:
            for i in range(0, size, 8 * h):
                _three_stages(block, i, h, block, i, h, h, none, s)
            h *= 8
        _stages(block, h)
        if after.size > 0:
            _flip(block, after[start >> 5 :], s)


@jit
def _far_stages(v, first, last, h, rows, buffer, words, s):
    """The stages of distance h, 2h, .., rows h/2, rows a power of 8; if there are words, last signs and s.

    Columns are as wide as the rows of the buffer, and counted over all groups of rows; first .. last - 1 are worked on.
    """
    width, none = buffer.size // rows, words[:0]
    columns = h // width
    for i in range(first, last):
        column = i // columns * rows * h + i % columns * width
        if rows == 8:
            _three_stages(v, column, h, v, column, h, width, words, s)
            continue
        for r in range(0, rows, 8):
            _three_stages(v, column + r * h, h, buffer, r * width, width, width, none, s)
        between = 8 * width
        while 8 * between < buffer.size:
            for j in range(0, buffer.size, 8 * between):
                _three_stages(buffer, j, between, buffer, j, between, between, none, s)
            between *= 8
        far = rows // 8 * h
        for r in range(rows // 8):
            _three_stages(buffer, r * width, between, v, column + r * h, far, width, words, s)


@jit
def _small(x, out, before, after, s):
    """All stages of fewer than 64 coordinates, with the signs and s before or after."""
    for i in range(x.size):
        out[i] = x[i]
    if before.size > 0:
        _flip(out, before, s)
    _stages(out, 1)
    if after.size > 0:
        _flip(out, after, s)


def _far_passes(p: int) -> list[tuple[int, int]]:
    """Return (distance, rows) of each pass over memory after the first."""
    stages = 3 * max(0, -(-(p.bit_length() - 1 - BLOCK_LOG2) // 3))
    h, passes = p >> stages, []
    while h < p:
        count = -(-stages // ROWS_LOG2)
        rows = 8 ** -(-stages // (3 * count))
        passes.append((h, rows))
        h, stages = h * rows, stages - (rows.bit_length() - 1)
    return passes


def _transform(x: np.ndarray, out: np.ndarray, words: np.ndarray, s: np.float32, forwards: bool) -> None:
    """One part, of p = out.size coordinates, from x to ``out``, which may be x."""
    none = words[:0]
    before, after = (words, none) if forwards else (none, words)
    if out.size < LEAST:
        _small(x, out, before, after, s)
        return
    passes = _far_passes(out.size)
    size, behind = passes[0][0] if passes else out.size, none if passes else after
    shared(out.size, size, lambda begin, end: _near_stages(x, out, begin, end, size, before, behind, s))
    for h, rows in passes:
        _far_pass(out, h, rows, after if h * rows == out.size else none, s)


def _far_pass(v: np.ndarray, h: int, rows: int, words: np.ndarray, s: np.float32) -> None:
    def work(first: int, last: int) -> None:
        _far_stages(v, first, last, h, rows, np.empty(rows * WIDTH, np.float32), words, s)

    shared(v.size // (rows * WIDTH), 1, work, size=rows * WIDTH)


def transform(v: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write H v/sqrt(p) to ``out``, which may be v, and return it: a round without signs of p = 2^n coordinates.

    Parameters
    ----------
    v, out : ndarray
        float32, shape (p,), contiguous.
    """
    _transform(v, out, np.zeros(words_per_part(v.size), np.uint32), np.float32(factor(v.size)), True)
    return out


def rotate(x: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Transform part by part, stage by stage within the cache."""
    return _run(x, words, rounds, True)


def unrotate(z: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """Undo the parts in reverse."""
    return _run(z, words, rounds, False)


def _run(x: torch.Tensor, words: torch.Tensor, rounds: int, forwards: bool) -> torch.Tensor:
    d, source, out = x.numel(), x.numpy(), np.empty(x.numel(), np.float32)
    p, n, s, starts = transform_length(d), words_per_part(d), np.float32(factor(d)), part_starts(d) * rounds
    signs = words.numpy().view(np.uint32)
    if not starts:
        return x.clone()
    order = list(enumerate(starts)) if forwards else list(enumerate(starts))[::-1]
    first = order[0][1]
    out[:first], out[first + p :] = source[:first], source[first + p :]
    for number, start in order:
        part = out[start : start + p]
        _transform(source[start : start + p], part, signs[number * n : (number + 1) * n], s, forwards)
        source = out
    return torch.from_numpy(out)
