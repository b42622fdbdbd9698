"""The positions of the largest magnitudes, exactly."""

from __future__ import annotations

import torch

from ..backend import implementation


def largest(x: torch.Tensor, k: int) -> torch.Tensor:
    """Return increasing positions of the k largest ``|x|``: int64, shape (k,); ties go to the lower index.

    Parameters
    ----------
    x : tensor
        Contiguous float32, shape (d,), finite; 1 <= k <= d.
    """
    return implementation("selection", x).largest(x, k)
