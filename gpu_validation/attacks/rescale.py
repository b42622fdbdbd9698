"""Random rescaling: the direction is honest, the length is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from operators import Key
from operators.random import uniform

from .attack import Attack


@dataclass(frozen=True)
class Rescale(Attack):
    """Multiply by 10^u, u uniform on [0, decades), afresh at every step (Bernstein et al. 2019, section 5)."""

    decades: float = 4.0

    name = "rescale"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """The gradient, longer."""
        return (own * np.float32(10 ** (self.decades * uniform(key, 1)[0]))).astype(np.float32)

    def right(self, p: float) -> float:
        """Signs are untouched."""
        return p
