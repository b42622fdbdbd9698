"""Whether a vector is finite, by one sum of it."""

from __future__ import annotations

import math
from typing import Any

import torch


def is_finite(vector: torch.Tensor) -> bool:
    """Return whether all entries are finite; one sum shows it, unless that overflows itself.

    Parameters
    ----------
    vector : tensor, shape (d,)
        The entries.
    """
    return math.isfinite(float(vector.sum())) or bool(torch.isfinite(vector).all())


def first_not_finite(vector: torch.Tensor) -> int:
    """Return the position of the first entry that is not finite; -1 if there is none.

    Parameters
    ----------
    vector : tensor, shape (d,)
        The entries.
    """
    return -1 if is_finite(vector) else int(torch.isfinite(vector).int().argmin())


def all_finite(state: Any) -> bool:
    """Return whether all tensors and numbers within dictionaries and lists are finite.

    Parameters
    ----------
    state : object
        Dictionaries and lists of tensors and plain values.
    """
    if isinstance(state, dict):
        return all(all_finite(value) for value in state.values())
    if isinstance(state, list | tuple):
        return all(all_finite(value) for value in state)
    if isinstance(state, torch.Tensor):
        return not state.is_floating_point() or bool(torch.isfinite(state).all())
    return not isinstance(state, float) or math.isfinite(state)
