"""Omniscient collusion: the faulty workers know the truth and all vote against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators import Key

from .attack import Attack


@dataclass(frozen=True)
class Collude(Attack):
    """Send -factor times the truth: never right, whatever the noise of the own gradient."""

    factor: float = 1.0

    name = "collude"
    colludes = True

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """The opposite of the truth."""
        return (-np.float32(self.factor) * truth).astype(np.float32)

    def right(self, p: float) -> float:
        """Never."""
        return 0.0
