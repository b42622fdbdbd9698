"""Negation: every faulty worker on its own sends the opposite of its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators import Key

from .attack import Attack


@dataclass(frozen=True)
class Negate(Attack):
    """Multiply by -factor (Bernstein et al. 2019, section 5: factor 1)."""

    factor: float = 1.0

    name = "negate"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """The opposite."""
        return (-np.float32(self.factor) * own).astype(np.float32)

    def right(self, p: float) -> float:
        """Right where the honest sign would have been wrong."""
        return 1 - p
