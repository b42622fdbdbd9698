"""Whether the mean model still goes somewhere: the angle between its movements of two successive rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch


class Turning:
    """Follows one model from averaging to averaging, while it is asked to."""

    def __init__(self) -> None:
        self._point: torch.Tensor | None = None
        self._movement: torch.Tensor | None = None

    def forget(self) -> None:
        """Begin anew with the next model."""
        self._point = self._movement = None

    def cosine(self, point: torch.Tensor) -> float:
        """Return the cosine of the angle between the last two movements; nan before there are two.

        Parameters
        ----------
        point : tensor
            The averaged model, shape (d,), which is kept.
        """
        before, self._point = self._point, point
        if before is None or before.shape != point.shape:
            self._movement = None
            return math.nan
        last, self._movement = self._movement, point - before
        if last is None:
            return math.nan
        product, new2, last2 = (float(a @ b) for a, b in ((last, self._movement), (self._movement,) * 2, (last,) * 2))
        return product / math.sqrt(new2 * last2) if new2 > 0 and last2 > 0 else math.nan

    def state(self) -> list[torch.Tensor]:
        """Return point and movement, as far as there are any."""
        return [kept for kept in (self._point, self._movement) if kept is not None]

    def load(self, state: Sequence[torch.Tensor]) -> None:
        """Continue where ``state`` was taken.

        Parameters
        ----------
        state : sequence of tensor
            What ``state`` gave.
        """
        self._point, self._movement = (*state, None, None)[:2]
