"""The positions of the largest magnitudes, exactly."""

from __future__ import annotations

from typing import Protocol

import torch


class Selection(Protocol):
    """The selection."""

    def largest(self, x: torch.Tensor, k: int) -> torch.Tensor:
        """Return increasing positions of the k largest ``|x|``: int64, shape (k,); ties go to the lower index.

        Parameters
        ----------
        x : tensor
            Contiguous float32, shape (d,), finite; 1 <= k <= d.
        """
