"""Random rotations of any dimension d by signs and Walsh-Hadamard transforms, without padding.

Let p be the largest power of two that is at most d.  One round multiplies the first p coordinates by random signs
and applies the orthonormal Hadamard matrix H/sqrt(p) to them; if p < d, it then does the same to the last p
coordinates with fresh signs.  Both parts are orthonormal, so a round is; the inverse undoes the parts in reverse.

Every back end does the same binary32 operations.  Forth: x_i is multiplied by +s or -s, s = binary32(1/sqrt(p));
then for h = 1, 2, 4, .., p/2 each pair (a, b) of coordinates i and i + h, i & h = 0, becomes (a + b, a - b).  Back:
the same sums in the same order, and last the product with +s or -s.  Coordinate i of a part has the sign minus if
bit i & 31 (lowest first) of the part's word i >> 5 is set; the parts' words follow each other in the forward order.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch


class Hadamard(Protocol):
    """The rotation and its inverse."""

    def rotate(self, x: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
        """Return the rotated vector, a new tensor.

        Parameters
        ----------
        x : tensor
            Contiguous float32, shape (d,), d >= 1.
        words : tensor
            int32 bit patterns, shape (word_count(d, rounds),), same device.  Sums of up to d entries must fit binary32:
            scale x so that ``max|x|`` is far from the ends of the range.
        """

    def unrotate(self, z: torch.Tensor, words: torch.Tensor, rounds: int) -> torch.Tensor:
        """Return the inverse of ``rotate`` for the same words, up to rounding, as a new tensor."""


def transform_length(d: int) -> int:
    """Return p, the largest power of two that is at most d >= 1."""
    return 1 << (d.bit_length() - 1)


def part_starts(d: int) -> tuple[int, ...]:
    """Return first coordinates of the parts of one round: 0, and d - p unless d is a power of two."""
    p = transform_length(d)
    return (0,) if p == d else (0, d - p)


def words_per_part(d: int) -> int:
    """Return 32-bit words that hold the signs of one part."""
    return (transform_length(d) + 31) // 32


def word_count(d: int, rounds: int) -> int:
    """Return 32-bit words that ``rounds`` rounds take at dimension d."""
    return rounds * len(part_starts(d)) * words_per_part(d)


def factor(d: int) -> float:
    """Return s = 1/sqrt(p) before it is rounded to binary32."""
    return 1 / math.sqrt(transform_length(d))
