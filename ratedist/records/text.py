"""Numbers and units as they are shown."""

from __future__ import annotations

import math


def unit_text(unit: str, value: float = 2.0) -> str:
    """Return the unit as it is shown after a number: nothing for pure numbers, a plural for what is counted.

    Parameters
    ----------
    unit : str
        The unit, such as "bit".
    value : float, optional
        The number before the unit, which decides whether there is a plural.
    """
    if unit in ("bit", "step", "round") and value != 1:
        return f"{unit}s"
    return "" if unit == "1" else unit


def number_text(value: float) -> str:
    """Return nine significant digits, whole numbers below 10^15 in full; thousands are set apart.

    Parameters
    ----------
    value : float
        The number.
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ")
    return f"{value:,.9g}".replace(",", " ")
