"""Full averaging: every rank receives the mean of all models (PASGD, local SGD)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from .mixing import Mixing


@final
@dataclass(frozen=True)
class Full(Mixing):
    """Full averaging: W = J with all entries 1/m; zeta = 0."""

    common = True

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return the matrix with all entries 1/m."""
        return np.full((m, m), 1 / m)
