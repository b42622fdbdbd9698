"""Cosine of the angle between the mean model's movements in two successive rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

COORDINATES = 1 << 13  # coordinates in the sample: error of the cosine about 1/sqrt(COORDINATES)


class Turning:
    """Tracks a model from averaging to averaging: all its entries, or evenly spaced ones of a large model."""

    def __init__(self) -> None:
        self._point: np.ndarray | None = None
        self._movement: np.ndarray | None = None

    def cosine(self, model: torch.Tensor) -> float:
        """Return the cosine of the angle between the last two movements; nan before there are two."""
        followed = model.detach()[:: -(-model.numel() // COORDINATES)].float().cpu()
        point, before, last = np.array(followed.numpy()), self._point, self._movement
        self._point = point
        self._movement = None if before is None or before.shape != point.shape else point - before
        if last is None or self._movement is None:
            return math.nan
        product, new2, last2 = (float(a @ b) for a, b in ((last, self._movement), (self._movement,) * 2, (last,) * 2))
        return product / math.sqrt(new2 * last2) if new2 > 0 and last2 > 0 else math.nan

    def state(self) -> list[torch.Tensor]:
        """Return the last point and movement, as far as they exist."""
        return [torch.from_numpy(kept) for kept in (self._point, self._movement) if kept is not None]

    def load(self, state: Sequence[torch.Tensor]) -> None:
        """Restore a state of ``state``."""
        self._point, self._movement = (*(kept.numpy() for kept in state), None, None)[:2]
