"""The sparse vector's code in torch."""

from __future__ import annotations

import torch

from ..codewords import reference as codewords

PARAMETER_BITS, VALUE_BITS, MOST = 5, 32, 31


def pack(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int = 0, head_bits: int = 0
) -> tuple[torch.Tensor, int]:
    """Pack the fields of all gaps at once."""
    return codewords.pack(*codes(index, values, d, head, head_bits))


def codes(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int, head_bits: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (values, widths) of all fields of the message, on the device of ``index``."""
    parts = [(torch.full_like(index[:1], head), torch.full_like(index[:1], head_bits))]
    if index.numel() < d:
        gaps = torch.diff(index, prepend=index.new_tensor([-1])) - 1
        r = best_parameter(gaps)
        parts += [(torch.full_like(index[:1], r), torch.full_like(index[:1], PARAMETER_BITS)), gap_fields(gaps, r)]
    patterns = values.view(torch.int32).long() & 0xFFFFFFFF
    parts.append((patterns, torch.full_like(patterns, VALUE_BITS)))
    return torch.cat([v for v, _ in parts]), torch.cat([w for _, w in parts])


def best_parameter(gaps: torch.Tensor) -> int:
    """Return the least r that minimises the length."""
    costs = torch.stack([(gaps >> r).sum() + gaps.numel() * (1 + r) for r in range(MOST + 1)])
    return int((costs == costs.min()).int().argmax())


def gap_fields(gaps: torch.Tensor, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each gap's fields: those of 32 ones, the other ones and the zero, the r low bits."""
    ones = gaps >> r
    counts = ones // 32 + 2
    last = counts.cumsum(0) - 1
    values, widths = gaps.new_full((int(counts.sum()),), (1 << 32) - 1), gaps.new_full((int(counts.sum()),), 32)
    values[last - 1], widths[last - 1] = (torch.ones_like(gaps) << (ones % 32 + 1)) - 2, ones % 32 + 1
    values[last], widths[last] = gaps & ((1 << r) - 1), torch.full_like(gaps, r)
    return values, widths
