"""Fields of one width in torch: through one byte for each bit."""

from __future__ import annotations

import torch
from torch.nn.functional import pad as extend


def pack(values: torch.Tensor, width: int) -> torch.Tensor:
    """Put every bit in a number of its own, then gather eight."""
    shifts = torch.arange(width - 1, -1, -1, device=values.device)
    bits = ((values.long()[:, None] >> shifts) & 1).reshape(-1)
    groups = extend(bits, (0, -bits.numel() % 8)).reshape(-1, 8)
    return (groups << torch.arange(7, -1, -1, device=values.device)).sum(1).to(torch.uint8)


def unpack(payload: torch.Tensor, n: int, width: int) -> torch.Tensor:
    """Put every bit in a number of its own, then gather fields."""
    bits = ((payload.long()[:, None] >> torch.arange(7, -1, -1, device=payload.device)) & 1).reshape(-1)
    fields = bits[: n * width].reshape(n, width)
    return (fields << torch.arange(width - 1, -1, -1, device=payload.device)).sum(1).to(torch.int32)
