"""Philox4x32-10 compiled for the CPU."""

from __future__ import annotations

import numpy as np
import torch

from ...compilation import jit
from ..threads import shared

TILE = 4096
PLANE = 1024


@jit(inline="always")
def rounds(c0, c1, c2, c3, k0, k1):
    """Return one block: four words (uint64 below 2^32) from a counter and a key of such words."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & mask, (p0 >> half) ^ c3 ^ k1, p0 & mask
        k0 = (k0 + np.uint64(0x9E3779B9)) & mask
        k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return c0, c1, c2, c3


@jit
def fill_planes(out, first, blocks, k0, k1):
    """Words of up to 1024 blocks: word j of block first + b at 1024 j + b of ``out`` (uint32, shape (4096,)).

    The masks tell the compiler that 32-bit factors suffice; without them each product takes three instructions.
    """
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    k0, k1 = k0 & mask, k1 & mask
    for b in range(blocks):
        n = np.uint64(first) + np.uint64(b)
        w0, w1, w2, w3 = rounds(n & mask, n >> half, np.uint64(0), np.uint64(0), k0, k1)
        out[b], out[b + 1024] = np.uint32(w0), np.uint32(w1)
        out[b + 2048], out[b + 3072] = np.uint32(w2), np.uint32(w3)


@jit
def fill_stream(out, start, k0, k1):
    """Words start .. start + out.size - 1 in order."""
    planes = np.empty(TILE, np.uint32)
    done, first = 0, start >> 2
    skip = start & 3
    while done < out.size:
        blocks = min(PLANE, (skip + out.size - done + 3) >> 2)
        fill_planes(planes, first, blocks, k0, k1)
        if skip == 0 and out.size - done >= TILE:
            part = out[done : done + TILE]
            for b in range(PLANE):
                part[4 * b], part[4 * b + 1] = planes[b], planes[b + 1024]
                part[4 * b + 2], part[4 * b + 3] = planes[b + 2048], planes[b + 3072]
            done += TILE
        else:
            take = min(4 * blocks - skip, out.size - done)
            for i in range(take):
                out[done + i] = planes[(((skip + i) & 3) << 10) + ((skip + i) >> 2)]
            done, skip = done + take, 0
        first += blocks


@jit
def fill_tile(words, at, n, k0, k1, supplied):
    """The words of coordinates at .. at + n - 1, n <= 4096 and ``at`` a multiple of 4096, into the first of ``words``.

    Parameters
    ----------
    words
        uint32, shape (8192,): the second half is overwritten.
    supplied
        Empty, or words to be used instead: one for all coordinates, or one for each in their order.
    """
    if supplied.size > 0:  # entry by entry: to assign a slice takes two seconds more to compile
        for i in range(n):
            words[i] = supplied[0 if supplied.size == 1 else at + i]
    elif n == TILE:
        fill_planes(words, at >> 2, np.int64(PLANE), k0, k1)  # a literal would be compiled apart
    else:
        fill_planes(words[TILE:], at >> 2, (n + 3) >> 2, k0, k1)
        for i in range(n):
            words[i] = words[TILE + ((i & 3) << 10) + (i >> 2)]


def fill(n: int, start: int, k0: int, k1: int, like: torch.Tensor) -> torch.Tensor:
    """Compute block by block."""
    out = np.empty(n, np.uint32)
    key = np.uint64(k0), np.uint64(k1)
    shared(n, TILE, lambda first, last: fill_stream(out[first:last], start + first, *key))
    return torch.from_numpy(out.view(np.int32))
