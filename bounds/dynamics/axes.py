"""The one convention of array shapes here: parameters broadcast in front, coordinates run along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np


def columns(*values: Any) -> list[np.ndarray]:
    """Return every value as float64 with a last axis of length 1 added, along which the coordinates run."""
    return [np.asarray(value, float)[..., None] for value in values]


def total(terms: Any) -> Any:
    """Return the sum over the coordinates: float64 of the broadcast shape, a float if that is a scalar."""
    sums = np.asarray(terms).sum(axis=-1)
    return float(sums) if sums.ndim == 0 else sums
