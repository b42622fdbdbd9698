"""The argument checks that every runtime formula shares."""

from __future__ import annotations

import math
import operator


def positive_integer(name: str, value: int) -> int:
    """Return the value as an int.

    Raises
    ------
    ValueError
        Unless it is an integer >= 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} must be an integer >= 1; got {name} = {value!r}")
    return number


def positive(name: str, value: float) -> float:
    """Return the value as a float.

    Raises
    ------
    ValueError
        Unless 0 < value < infinity.
    """
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and > 0; got {name} = {value!r}")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """Return the value as a float.

    Raises
    ------
    ValueError
        Unless 0 <= value < infinity.
    """
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and >= 0; got {name} = {value!r}")
    return float(value)
