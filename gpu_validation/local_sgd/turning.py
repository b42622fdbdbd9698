"""Whether the mean model still goes somewhere: the angle between its movements of two successive rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

COORDINATES = 1 << 13  # that are followed: their angle is the whole model's to some 1/sqrt(COORDINATES)


class Turning:
    """Follows one model from averaging to averaging: all its entries, or evenly spaced ones where there are more."""

    def __init__(self) -> None:
        self._point: np.ndarray | None = None
        self._movement: np.ndarray | None = None

    def cosine(self, model: torch.Tensor) -> float:
        """Return the cosine of the angle between the last two movements; nan before there are two.

        Parameters
        ----------
        model : tensor
            The averaged model, shape (d,); what is followed of it is copied, as float32.
        """
        followed = model.detach()[:: -(-model.numel() // COORDINATES)].float().cpu()
        point, before, last = np.array(followed.numpy()), self._point, self._movement
        self._point = point
        self._movement = None if before is None or before.shape != point.shape else point - before
        if last is None or self._movement is None:
            return math.nan
        product, new2, last2 = (float(a @ b) for a, b in ((last, self._movement), (self._movement,) * 2, (last,) * 2))
        return product / math.sqrt(new2 * last2) if new2 > 0 and last2 > 0 else math.nan

    def state(self) -> list[torch.Tensor]:
        """Return point and movement, as far as there are any."""
        return [torch.from_numpy(kept) for kept in (self._point, self._movement) if kept is not None]

    def load(self, state: Sequence[torch.Tensor]) -> None:
        """Continue where ``state`` was taken.

        Parameters
        ----------
        state : sequence of tensor
            What ``state`` gave.
        """
        self._point, self._movement = (*(kept.numpy() for kept in state), None, None)[:2]
