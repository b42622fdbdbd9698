"""The sparse vector's code on the device: the fields by torch, their bits by Triton."""

from __future__ import annotations

import torch

from ..codewords import cuda as codewords
from .cpu import unpack as unpack
from .reference import codes


def pack(index: torch.Tensor, values: torch.Tensor, d: int, head: int, head_bits: int) -> tuple[torch.Tensor, int]:
    return codewords.pack(*codes(index, values, d, head, head_bits))
