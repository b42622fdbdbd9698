"""The sparse vector's code in torch."""

from __future__ import annotations

import torch

from ...bitstream import BitReader
from ...message import CorruptMessage
from ..codewords import reference as codewords

PARAMETER_BITS, VALUE_BITS, MOST = 5, 32, 31


def pack(index: torch.Tensor, values: torch.Tensor, d: int, head: int, head_bits: int) -> tuple[torch.Tensor, int]:
    """See the package."""
    return codewords.pack(*codes(index, values, d, head, head_bits))


def codes(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int, head_bits: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, widths) of all fields of the message, on the device of ``index``."""
    parts = [(torch.full_like(index[:1], head), torch.full_like(index[:1], head_bits))]
    if index.numel() < d:
        gaps = torch.diff(index, prepend=index.new_tensor([-1])) - 1
        r = best_parameter(gaps)
        parts += [(torch.full_like(index[:1], r), torch.full_like(index[:1], PARAMETER_BITS)), gap_fields(gaps, r)]
    patterns = values.view(torch.int32).long() & 0xFFFFFFFF
    parts.append((patterns, torch.full_like(patterns, VALUE_BITS)))
    return torch.cat([v for v, _ in parts]), torch.cat([w for _, w in parts])


def best_parameter(gaps: torch.Tensor) -> int:
    """The least r that minimises the length."""
    costs = torch.stack([(gaps >> r).sum() + gaps.numel() * (1 + r) for r in range(MOST + 1)])
    return int((costs == costs.min()).int().argmax())


def gap_fields(gaps: torch.Tensor, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Per gap: as many fields of 32 ones as there are, the other ones and the zero, the r low bits."""
    ones = gaps >> r
    counts = ones // 32 + 2
    last = counts.cumsum(0) - 1
    values, widths = gaps.new_full((int(counts.sum()),), (1 << 32) - 1), gaps.new_full((int(counts.sum()),), 32)
    values[last - 1], widths[last - 1] = (torch.ones_like(gaps) << (ones % 32 + 1)) - 2, ones % 32 + 1
    values[last], widths[last] = gaps & ((1 << r) - 1), torch.full_like(gaps, r)
    return values, widths


def unpack(payload: torch.Tensor, bits: int, k: int, d: int, position: int) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package."""
    reader = BitReader(payload.numpy(), bits, position)
    index = torch.arange(k)
    if k < d:
        r, last, places = reader.read(PARAMETER_BITS), -1, []
        for _ in range(k):
            quotient = 0
            while reader.read(1):
                quotient += 1
            last += (quotient << r) + reader.read(r) + 1
            if last >= d:
                raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
            places.append(last)
        index = torch.tensor(places)
        if best_parameter(torch.diff(index, prepend=torch.tensor([-1])) - 1) != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    patterns = torch.tensor([reader.read(VALUE_BITS) for _ in range(k)], dtype=torch.int64)
    reader.finish()
    values = torch.where(patterns < 1 << 31, patterns, patterns - (1 << 32)).int().view(torch.float32)
    if not torch.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return index, values
