"""A sparse vector on the wire: its support as Rice-coded gaps, then its values in binary32.

The least parameter r that makes the gaps shortest takes 5 bits; a gap g is its quotient g >> r in ones, a zero, and
its r low bits.  Nothing is sent of the support if all d coordinates are there.
"""

from __future__ import annotations

from typing import Protocol

import torch

PARAMETER_BITS = 5
VALUE_BITS = 32
MOST = 31  # parameter


class Rice(Protocol):
    """The coder; ``decoder`` reads on every device what it writes."""

    def pack(
        self, index: torch.Tensor, values: torch.Tensor, d: int, head: int = 0, head_bits: int = 0
    ) -> tuple[torch.Tensor, int]:
        """Return (payload, bits) of a field of 0 to 32 bits, then k >= 1 values at increasing positions below d.

        Parameters
        ----------
        index : tensor
            int64, values : float32, both of shape (k,).
        """


def worst_bits(k: int, d: int) -> int:
    """Return the most bits that k values among d coordinates take: the worst total gap d - k at the best parameter."""
    if k == d:
        return VALUE_BITS * d
    return VALUE_BITS * k + PARAMETER_BITS + min(k * (1 + r) + ((d - k) >> r) for r in range(MOST + 1))
