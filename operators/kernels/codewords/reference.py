"""Fields of varying width in torch: one byte for each bit, bit by bit of all fields at once."""

from __future__ import annotations

import torch

from ..fields import reference as fields


def pack(values: torch.Tensor, widths: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Put the j-th bit of all fields in place at once."""
    ends = widths.cumsum(0)
    total = int(ends[-1]) if ends.numel() else 0
    bits = torch.zeros(total, dtype=torch.int32, device=values.device)
    for j in range(int(widths.max()) if ends.numel() else 0):  # the lowest bit of a field is its last
        wide = widths > j
        bits[ends[wide] - 1 - j] = ((values[wide] >> j) & 1).int()
    return fields.pack(bits, 1), total
