"""Ternary digits in torch."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ..levels import reference as levels
from ..philox import Stream

TAIL_BITS = (0, 2, 4, 5, 7)


def encode(x: torch.Tensor, rate: float, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round all, then pack all."""
    rates = torch.tensor([rate], dtype=torch.float64, device=x.device)
    digits = levels.with_rates(x, x.numel(), rates, stream) + 1
    groups = pad(digits, (0, -x.numel() % 5)).reshape(-1, 5)
    packed = (groups * torch.tensor([1, 3, 9, 27, 81], device=x.device)).sum(1)
    if x.numel() % 5:
        packed[-1] <<= 8 - TAIL_BITS[x.numel() % 5]
    return torch.cat([torch.zeros(room, dtype=torch.uint8, device=x.device), packed.to(torch.uint8)])


def decode(payload: torch.Tensor, n: int, scale: float) -> tuple[torch.Tensor, bool, bool]:
    """Divide all bytes at once."""
    values = payload.long()
    if n % 5:
        values = torch.cat([values[:-1], values[-1:] >> (8 - TAIL_BITS[n % 5])])
    digits = torch.stack([values // 3**j % 3 for j in range(5)], dim=1).reshape(-1)[:n]
    most = torch.full_like(values, 3**5)
    if n % 5:
        most[-1] = 3 ** (n % 5)
    out = (digits - 1).float() * torch.tensor(scale, dtype=torch.float32, device=payload.device)
    return out, bool((digits != 1).any()), bool((values < most).all())
