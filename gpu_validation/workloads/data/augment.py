"""Standard augmentation of small images: pad by four, crop and flip at random."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import pad

from operators import Key
from operators.random import bits32

PADDING = 4


def crops_and_flips(key: Key, n: int) -> torch.Tensor:
    """Return the random choices for n images, int64 of shape (n, 3): row and column shifts in 0..8, flip 0 or 1."""
    words = bits32(key, 3 * n).reshape(n, 3).astype(np.uint64)
    counts = np.array([2 * PADDING + 1, 2 * PADDING + 1, 2], np.uint64)
    return torch.from_numpy(((words * counts) >> np.uint64(32)).astype(np.int64))


def crop_and_flip(images: torch.Tensor, choices: torch.Tensor) -> torch.Tensor:
    """Return the images shifted by shift - 4, with black borders, and mirrored where chosen; same shape and dtype.

    Parameters
    ----------
    images : tensor
        Images, shape (n, channels, height, width).
    choices : tensor
        Result of ``crops_and_flips``.
    """
    n, channels, height, width = images.shape
    device = images.device
    padded = pad(images, [PADDING] * 4)
    columns = torch.arange(width, device=device).expand(n, -1)
    columns = torch.where(choices[:, 2:] == 1, columns.flip(1), columns) + choices[:, 1:2]
    rows = torch.arange(height, device=device) + choices[:, :1]
    image = torch.arange(n, device=device)[:, None, None, None]
    channel = torch.arange(channels, device=device)[None, :, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]
