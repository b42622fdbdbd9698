"""Checks whether vectors are finite, by one sum."""

from __future__ import annotations

import math
from typing import Any

import torch


def is_finite(vector: torch.Tensor) -> bool:
    """Return whether all entries of a vector are finite; one sum shows it unless the sum itself overflows."""
    return math.isfinite(float(vector.sum())) or bool(torch.isfinite(vector).all())


def first_not_finite(vector: torch.Tensor) -> int:
    """Return the index of the first non-finite entry; -1 if there is none."""
    return -1 if is_finite(vector) else int(torch.isfinite(vector).int().argmin())


def all_finite(state: Any) -> bool:
    """Return whether all tensors and numbers in nested dictionaries and lists are finite."""
    if isinstance(state, dict):
        return all(all_finite(value) for value in state.values())
    if isinstance(state, list | tuple):
        return all(all_finite(value) for value in state)
    if isinstance(state, torch.Tensor):
        return not state.is_floating_point() or bool(torch.isfinite(state).all())
    return not isinstance(state, float) or math.isfinite(state)
