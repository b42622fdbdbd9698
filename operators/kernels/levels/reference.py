"""Stochastic rounding in torch."""

from __future__ import annotations

import torch

from ..fields import reference as fields
from ..philox import Stream, tiled
from ..philox import reference as philox
from . import rate_of, width_of


def _of(runs: torch.Tensor, d: int, step: int) -> torch.Tensor:
    """Return the value of each coordinate's run."""
    return runs[torch.arange(d, device=runs.device) // step]


def signed(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream) -> torch.Tensor:
    """Round all coordinates at once."""
    return with_rates(x, step, rate_of(most, scales), stream)


def with_rates(x: torch.Tensor, step: int, rates: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Return the levels at given rates."""
    if stream.words is None:
        words = tiled(philox.words64(x.numel(), 0, stream.k0, stream.k1, x.device))
    else:
        words = stream.words.long() & 0xFFFFFFFF
    scaled = x.abs().double() * _of(rates, x.numel(), step)
    level = torch.floor(scaled + words.double() * 2.0**-32).to(torch.int32)
    return torch.where(x < 0, -level, level)


def encode(x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream, room: int = 0) -> torch.Tensor:
    """Round all, then pack all."""
    packed = fields.pack(signed(x, step, scales, most, stream) + most, width_of(most))
    return torch.cat([torch.zeros(room, dtype=torch.uint8, device=x.device), packed])


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Unpack all, then scale all."""
    level = fields.unpack(payload, d, width_of(most)) - most
    spacing = _of(spacings, d, step)
    run = torch.arange(d, device=payload.device) // step
    top = torch.zeros_like(spacings, dtype=torch.int32).scatter_reduce(0, run, level.abs(), "amax")
    valid = bool((top <= torch.where(spacings > 0, most, 0)).all())
    return (spacing * level).float(), top == most, valid
