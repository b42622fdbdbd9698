"""Sign bits in torch."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ..norms import reference as norms


def pack(x: torch.Tensor) -> torch.Tensor:
    """Gather eight signs by their weights."""
    patterns = x.view(torch.int32)
    negative = (patterns < 0) & (patterns != -(1 << 31))  # by the pattern: subnormal numbers may be flushed
    groups = pad(negative.to(torch.uint8), (0, -x.numel() % 8)).reshape(-1, 8)
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=x.device)
    return (groups * weights).sum(1, dtype=torch.uint8)


def pack_with_sum(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Pack, then sum."""
    return pack(x), float(norms.absolute_sum(x, x.numel()).item())


def unpack(payload: torch.Tensor, n: int, plus: float = 1.0, minus: float = -1.0) -> torch.Tensor:
    """Look at all bits at once."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=payload.device)
    bits = ((payload[:, None] >> shifts) & 1).reshape(-1)[:n]
    values = torch.tensor([plus, minus], dtype=torch.float32, device=payload.device)
    return values[bits.long()]
