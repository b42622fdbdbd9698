"""Ternary levels -1, 0, 1 as digits 0, 1, 2, five to a byte, the first digit of a group lowest.

A last group of 1, 2, 3, 4 digits takes 2, 4, 5, 7 bits at the top of its byte.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
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


def packed_rows(digits: np.ndarray) -> np.ndarray:
    """Return the digits of every row, packed: uint8, shape (m, ceil(trit_bits(d)/8)).

    Parameters
    ----------
    digits : ndarray, shape (m, d)
        Numbers 0, 1 and 2.
    """
    m, d = digits.shape
    weights = 3 ** np.arange(5)
    whole = digits[:, : d - d % 5].reshape(m, -1, 5) @ weights
    last = (digits[:, d - d % 5 :] @ weights[: d % 5]) << (8 - TAIL_BITS[d % 5])
    return np.concatenate([whole, last[:, None]] if d % 5 else [whole], axis=1).astype(np.uint8)


def unpacked_rows(payload: np.ndarray, d: int) -> tuple[np.ndarray, bool]:
    """Return (the levels -1, 0, 1 of every row, float32 of shape (m, d); whether all groups are possible).

    Parameters
    ----------
    payload : ndarray, uint8, shape (m, ceil(trit_bits(d)/8))
        Packed rows.
    d : int
        Number of coordinates of a row.
    """
    groups, rest = payload.astype(np.int64), d % 5
    if rest:
        groups[:, -1] >>= 8 - TAIL_BITS[rest]
    possible = bool((groups[:, : d // 5] < 3**5).all() and (groups[:, d // 5 :] < 3**rest).all())
    digits = groups[:, :, None] // 3 ** np.arange(5) % 3
    return (digits.reshape(payload.shape[0], -1)[:, :d] - 1).astype(np.float32), possible
