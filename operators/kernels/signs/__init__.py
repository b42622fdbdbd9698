"""One bit per coordinate: 1 for a negative number, 0 for +0, -0 and positive ones; first coordinate highest."""

from __future__ import annotations

from typing import Protocol

import torch


class Signs(Protocol):
    """The coder, its decoder, and the coder that sums."""

    def pack(self, x: torch.Tensor) -> torch.Tensor:
        """Sign bits as uint8, shape (ceil(n/8),), zero-padded.

        Parameters
        ----------
        x : tensor
            Contiguous float32, shape (n,).
        """

    def pack_with_sum(self, x: torch.Tensor) -> tuple[torch.Tensor, float]:
        """Return (``pack(x)``, the ordered sum of magnitudes of ``norms``), on the CPU in one pass over memory."""

    def unpack(self, payload: torch.Tensor, n: int, plus: float = 1.0, minus: float = -1.0) -> torch.Tensor:
        """Return float32, shape (n,): ``minus`` where the bit is 1, ``plus`` elsewhere; payload has >= n bits."""
