"""Selection in torch, by sorting."""

from __future__ import annotations

import torch


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """Sort the bit patterns."""
    patterns = x.view(torch.int32) & 0x7FFFFFFF  # ordered as the magnitudes are
    order = torch.sort(patterns, descending=True, stable=True).indices
    return order[:k].sort().values
