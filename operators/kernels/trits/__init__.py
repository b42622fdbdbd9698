"""Ternary levels -1, 0, 1 as digits 0, 1, 2, five to a byte, the first digit of a group lowest.

A last group of 1, 2, 3, 4 digits takes 2, 4, 5, 7 bits at the top of its byte.
"""

from __future__ import annotations

from typing import Protocol

import torch

from ..philox import Stream

TAIL_BITS = (0, 2, 4, 5, 7)


class Trits(Protocol):
    """The coder, which rounds, and its decoder."""

    def encode(self, x: torch.Tensor, rate: float, stream: Stream, room: int = 0) -> torch.Tensor:
        """Return the levels of ``levels.signed`` at one rate <= ``1/max|x|`` (rounded up), after ``room`` bytes for the
        caller.

        Parameters
        ----------
        x : tensor
            Contiguous float32, shape (n,).  uint8 tensor, shape (room + ceil(trit_bits(n)/8),).
        """

    def decode(self, payload: torch.Tensor, n: int, scale: float) -> tuple[torch.Tensor, bool, bool]:
        """Return (scale times levels, float32 of shape (n,); whether some level is not 0; whether all groups
        are possible).
        """


def trit_bits(n: int) -> int:
    """Return bits of n digits."""
    return 8 * (n // 5) + TAIL_BITS[n % 5]
