"""Philox4x32-10 (Salmon et al. 2011): a stream of 32-bit words, word i of a key from (key, i) alone.

Word i is word i & 3 of block i >> 2.  A kernel that draws one word a coordinate reads the stream in *tiles*:
of each 4096 words, word j of block b serves coordinate 1024 j + b, so that many blocks are worked on at once and
nothing is shuffled; the rest, fewer than 4096, are read in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..backend import implementation

TILE = 4096  # words, and coordinates, of a tile
PLANE = TILE // 4  # blocks of a tile


def fill(n: int, start: int, k0: int, k1: int, like: torch.Tensor) -> torch.Tensor:
    """Words start .. start + n - 1 of the stream of the 64-bit key (k0, k1), on the device of ``like``.

    int32 tensor, shape (n,), that holds the bit patterns.
    """
    return implementation("philox", like).fill(n, start, k0, k1, like)


def tiled(words: torch.Tensor) -> torch.Tensor:
    """A stream's words from its beginning, shape (n,), in the order of the coordinates that they serve."""
    whole = words.numel() // TILE * TILE
    if whole == 0:
        return words
    return torch.cat([words[:whole].reshape(-1, PLANE, 4).transpose(1, 2).reshape(-1), words[whole:]])


@dataclass(frozen=True)
class Stream:
    """What a kernel that rounds n coordinates draws from.

    k0, k1 : the 64-bit Philox key, two 32-bit halves.
    words : None, or words to be used instead, int32 patterns on the vector's device: one for each coordinate in
        order, shape (n,), or one for all of them, shape (1,).
    """

    k0: int
    k1: int
    words: torch.Tensor | None = None


def to_nearest(device: torch.device) -> Stream:
    """The word 2^31 for every coordinate: stochastic rounding becomes rounding to nearest, halves away from zero."""
    return Stream(0, 0, torch.tensor([-(1 << 31)], dtype=torch.int32, device=device))
