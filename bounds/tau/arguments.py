"""The argument check that the tau rules share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..enclosure import exact
from ..symbols import TABLE


def exact_arguments(rule: str, **values: Any) -> dict[str, Fraction]:
    """Return every value as an exact rational inside the domain of the symbol of its name.

    Raises
    ------
    ValueError
        With the rule of the first value outside its domain.
    TypeError
        For what is no number.
    """
    arguments = {}
    for name, value in values.items():
        domain = TABLE[name].domain
        try:
            arguments[name] = exact(value)
        except ValueError:  # nan, infinite, or a string that is no number
            raise ValueError(f"{rule} needs {domain.text(name)}; got {name} = {value}") from None
        if not domain.contains(arguments[name]):
            raise ValueError(f"{rule} needs {domain.text(name)}; got {name} = {value}")
    return arguments


def float_arguments(rule: str, **values: Any) -> dict[str, float]:
    """Return the same as floats."""
    return {name: float(value) for name, value in exact_arguments(rule, **values).items()}
