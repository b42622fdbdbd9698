"""One bit a coordinate: 1 for a negative number, 0 for +0, -0 and positive ones; first coordinate highest."""

from __future__ import annotations

import torch

from ..backend import implementation


def pack(x: torch.Tensor) -> torch.Tensor:
    """Sign bits as uint8, shape (ceil(n/8),), zero-padded.

    Parameters
    ----------
    x : tensor
        Contiguous float32, shape (n,).
    """
    return implementation("signs", x).pack(x)


def pack_with_sum(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return (``pack(x)``, the ordered sum of magnitudes of ``norms``), on the CPU in one pass over memory."""
    return implementation("signs", x).pack_with_sum(x)


def unpack(payload: torch.Tensor, n: int, plus: float = 1.0, minus: float = -1.0) -> torch.Tensor:
    """Return float32 tensor, shape (n,): ``minus`` where the bit is 1, ``plus`` elsewhere; payload has >= n bits."""
    return implementation("signs", payload).unpack(payload, n, plus, minus)
