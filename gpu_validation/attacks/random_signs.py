"""Random sign flips: noise instead of a vote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators import Key
from operators.random import bits32

from .attack import Attack


@dataclass(frozen=True)
class RandomSigns(Attack):
    """Flip the sign of each coordinate with probability 1/2 (Bernstein et al. 2019, section 5)."""

    name = "random_signs"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """The gradient's magnitudes under fair coins."""
        return np.where(bits32(key, own.size) >> 31 == 1, -own, own).astype(np.float32)

    def right(self, p: float) -> float:
        """A fair coin."""
        return 0.5
