"""Unsigned numbers of one width, most significant bit first, without gaps."""

from __future__ import annotations

from typing import Protocol

import torch


class Fields(Protocol):
    """The coder and its decoder."""

    def pack(self, values: torch.Tensor, width: int) -> torch.Tensor:
        """Return uint8, shape (ceil(n width/8),), zero-padded.

        Parameters
        ----------
        values : int32 in [0, 2^width), shape (n,)
        width : int
            1 .. 31.
        """

    def unpack(self, payload: torch.Tensor, n: int, width: int) -> torch.Tensor:
        """Return int32 tensor, shape (n,); the payload has at least n width bits, width 1 .. 31."""
