"""Records as text, as plain values, and as JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# -- text ----------------------------------------------------------------------------------------------


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
    """Return nine significant digits, whole numbers below 10^15 in full; thousands are separated by commas.

    Parameters
    ----------
    value : float
        The number.
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.9g}"


# -- plain values and JSON -----------------------------------------------------------------------------


def plain(record: Any) -> Any:
    """Return a record as nested dictionaries, lists, numbers, texts and None.

    Parameters
    ----------
    record
        A record, or anything that is nested in one.
    """
    if type(record) in (str, float, int, bool, type(None)):
        return record
    if hasattr(record, "to_dict"):
        return record.to_dict()
    if isinstance(record, dict):
        return {str(key): plain(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [plain(value) for value in record]
    if hasattr(record, "__dataclass_fields__"):
        shown = (name for name, f in record.__dataclass_fields__.items() if f.metadata.get("plain", True))
        return {name: plain(getattr(record, name)) for name in shown}
    if isinstance(record, np.ndarray):
        return record.tolist()
    return record


def to_json(record: Any) -> Any:
    """As ``plain``, with infinities and nan as the texts "Infinity", "-Infinity" and "NaN", as float() reads.

    Parameters
    ----------
    record
        A record, or anything that is nested in one.
    """
    return _jsonable(plain(record))


def _jsonable(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if kind in (str, int, bool, type(None)):
        return value
    if kind is dict:
        return {key: _jsonable(part) for key, part in value.items()}
    if kind is list:
        return [_jsonable(part) for part in value]
    return str(value)
