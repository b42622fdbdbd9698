"""The sparse vector's code on the device: the fields by torch, their bits by Triton."""

from __future__ import annotations

import torch

from ..codewords import cuda as codewords
from .reference import codes


def pack(
    index: torch.Tensor, values: torch.Tensor, d: int, head: int = 0, head_bits: int = 0
) -> tuple[torch.Tensor, int]:
    """Compute the fields in torch, pack them in Triton."""
    return codewords.pack(*codes(index, values, d, head, head_bits))
