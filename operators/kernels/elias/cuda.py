"""The coder of levels on the device: the fields by torch, their bits by Triton."""

from __future__ import annotations

import torch

from ..codewords import cuda as codewords
from .reference import fields


def encode(levels: torch.Tensor, norms: torch.Tensor, step: int, code: str, most: int) -> tuple[torch.Tensor, int]:
    """Compute the fields in torch, pack them in Triton."""
    return codewords.pack(*fields(levels, norms, step, code))
