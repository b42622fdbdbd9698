"""Fields of varying width compiled for the CPU."""

from __future__ import annotations

import numpy as np
import torch

from ...bits.bitstream import pack32


def pack(values: torch.Tensor, widths: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Write field by field."""
    payload, bits = pack32(values.numpy().view(np.uint64), widths.numpy(), values.numel())
    return torch.from_numpy(payload), bits
