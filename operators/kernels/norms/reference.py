"""Norms of runs in torch."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from . import LARGEST, beyond_binary32

LANES, PIECE = 64, 4096


def _runs(x: torch.Tensor, step: int) -> torch.Tensor:
    return pad(x, (0, -x.numel() % step)).reshape(-1, step)


def _sum(terms: torch.Tensor) -> torch.Tensor:
    """Return row sums of a float64 matrix in the order of the package."""
    piece = PIECE if terms.shape[1] > LANES else LANES
    lanes = pad(terms, (0, -terms.shape[1] % piece)).reshape(terms.shape[0], -1, piece // LANES, LANES)
    total = torch.zeros_like(lanes[:, :, 0])
    for row in range(lanes.shape[2]):
        total = total + lanes[:, :, row]
    width = LANES
    while width > 1:
        width //= 2
        total = total[..., :width] + total[..., width:]
    total = total[..., 0]
    return total[:, 0] if total.shape[1] == 1 else _sum(total)


def largest(x: torch.Tensor, step: int) -> torch.Tensor:
    """Compare the bit patterns."""
    patterns = x.view(torch.int32) & 0x7FFFFFFF  # ordered as the magnitudes are
    return _runs(patterns, step).amax(1).view(torch.float32)


def absolute_sum(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum all runs at once."""
    return _sum(_runs(x.abs().double(), step))


def energy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum all runs at once."""
    return _sum(_runs(x.double().square(), step))


def euclidean(x: torch.Tensor, step: int) -> torch.Tensor:
    """Round the roots of the sums up."""
    return rounded_up(energy(x, step).sqrt())


def rounded_up(norms: torch.Tensor) -> torch.Tensor:
    """Return the least binary32 numbers that are not below norms in float64, on any device."""
    if norms.max() > LARGEST:
        raise beyond_binary32(norms.max().item())
    rounded = norms.float()
    return torch.where(rounded.double() < norms, torch.nextafter(rounded, torch.full_like(rounded, torch.inf)), rounded)
