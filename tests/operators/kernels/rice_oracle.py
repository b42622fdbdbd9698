"""The decoder of sparse vectors in plain Python, one bit after the other."""

from __future__ import annotations

import torch

from operators import CorruptMessage
from operators.bits.bitstream import BitReader
from operators.kernels.rice.reference import PARAMETER_BITS, VALUE_BITS, best_parameter


def unpack(payload: torch.Tensor, bits: int, k: int, d: int, position: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The positions and values read one by one; see ``operators.kernels.rice.unpack``."""
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
