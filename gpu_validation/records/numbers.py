"""Settings that must be numbers."""

from __future__ import annotations

import operator as integers
from typing import Any

import numpy as np


def whole_number(name: str, value: Any) -> int:
    """Convert an integer of any library to int; ``name`` is the setting that an error names.

    Raises ValueError for any other value, including True and False.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return integers.index(value)
        except TypeError:
            pass
    also = ', a rule of bounds.schedules or "auto"' if name in ("schedule", "local_sgd_steps") else ""
    raise ValueError(f"{name} must be a whole number{also}; got {value!r}: give an integer such as 8")


def real_number(name: str, value: Any) -> float:
    """Convert a number of any library to float; raises ValueError for any other value."""
    if not isinstance(value, bool | np.bool_ | str):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise ValueError(f"{name} must be a number; got {value!r}: give one such as 0.9")
