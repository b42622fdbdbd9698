"""Numbers in fields of their own widths, most significant bit first, without gaps."""

from __future__ import annotations

from typing import Protocol

import torch


class Codewords(Protocol):
    """The coder."""

    def pack(self, values: torch.Tensor, widths: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Return (payload uint8, bits).

        Parameters
        ----------
        values : int64, shape (n,), each in [0, 2^width)
        widths : tensor
            int64 in 0 .. 32, same shape.

        Notes
        -----
        The payload is zero-padded to a byte.
        """
