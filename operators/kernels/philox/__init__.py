"""Philox4x32-10 (Salmon et al. 2011): a stream of 32-bit words, word i of a key from (key, i) alone.

Word i is word i & 3 of block i >> 2.  A kernel that draws one word a coordinate reads the stream in ``*tiles*``: of
each 4096 words, word j of block b serves coordinate 1024 j + b, so that many blocks are worked on at once and nothing
is shuffled; the rest, fewer than 4096, are read in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

TILE = 4096  # words, and coordinates, of a tile
PLANE = TILE // 4  # blocks of a tile


class Philox(Protocol):
    """The stream itself."""

    def fill(self, n: int, start: int, k0: int, k1: int, like: torch.Tensor) -> torch.Tensor:
        """Return words start .. start + n - 1 of the stream of the 64-bit key (k0, k1), on the device of ``like``.

        int32 tensor, shape (n,), that holds the bit patterns.

        Parameters
        ----------
        n : int
            How many words.
        start : int
            Index of the first word.
        k0 : int
            First word of the key.
        k1 : int
            Second word of the key.
        like : tensor
            A tensor on the wanted device.
        """


def tiled(words: torch.Tensor) -> torch.Tensor:
    """Return a stream's words from its beginning, shape (n,), in the order of the coordinates that they serve.

    Parameters
    ----------
    words : tensor
        Random words, uint32.
    """
    whole = words.numel() // TILE * TILE
    if whole == 0:
        return words
    return torch.cat([words[:whole].reshape(-1, PLANE, 4).transpose(1, 2).reshape(-1), words[whole:]])


@dataclass(frozen=True)
class Stream:
    """What a kernel that rounds n coordinates draws from.

    Parameters
    ----------
    k0 : int
        First half of the 64-bit Philox key.
    k1 : int
        Second half of it.
    words : tensor or None, optional
        None, or words to be used instead, int32 patterns on the vector's device: one for each coordinate in order,
        shape (n,), or one for all of them, shape (1,).
    """

    k0: int
    k1: int
    words: torch.Tensor | None = None


def to_nearest(device: torch.device) -> Stream:
    """Return the word 2^31 for every coordinate: stochastic rounding becomes rounding to nearest, halves away from
    zero.

    Parameters
    ----------
    device : device
        Where the result lies.
    """
    return Stream(0, 0, torch.tensor([-(1 << 31)], dtype=torch.int32, device=device))
