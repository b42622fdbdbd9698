"""The 1797 handwritten digits of scikit-learn, for workloads and as tensors."""

from __future__ import annotations

import torch

from .data import Bundled, load

DIGITS = Bundled("digits", held_out=0.2)


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return images in [0, 1], shape (1797, 64), float32, and labels, shape (1797,), int64."""
    samples = load(Bundled("digits")).train
    return samples.inputs.float(), samples.targets
