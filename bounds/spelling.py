"""How a number may be written: 1e9, 1_000_000, 1.3B, 1/3; the same in every argument of every command."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

MOST_CHARACTERS = 64
LARGEST_EXPONENT = 300
LARGEST = 10**LARGEST_EXPONENT

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE](?P<exponent>[+-]?[0-9]{1,4}))?|[+-]?[0-9]+/0*[1-9][0-9]*")
_COUNT = re.compile(r"(?P<digits>[+-]?[0-9]+(_[0-9]+)*(\.[0-9]+)?)(?P<unit>[kKMBGT]?)")
_UNITS = {"": 0, "k": 3, "K": 3, "M": 6, "B": 9, "G": 9, "T": 12}


def spelled(text: str) -> str:
    """Return "1_000_000" without its underscores and "1.3B" as "1.3e9"; any other text as it is.

    Parameters
    ----------
    text : str
        What was typed.
    """
    match = _COUNT.fullmatch(text)
    if match is None:
        return text
    digits, exponent = match["digits"].replace("_", ""), _UNITS[match["unit"]]
    return f"{digits}e{exponent}" if exponent else digits


def exact(text: str, *, most_characters: int = MOST_CHARACTERS) -> Fraction | None:
    """Return the number that a text states, None for a text that states none, or one beyond 10^300.

    Parameters
    ----------
    text : str
        Decimal digits or p/q, as ``spelled`` returns them.
    most_characters : int, optional
        That it may hold.
    """
    match = _NUMBER.fullmatch(text) if len(text) <= most_characters else None
    if match is None or abs(int(match["exponent"] or 0)) > LARGEST_EXPONENT:
        return None
    number = Fraction(text)
    return number if abs(number) <= LARGEST else None


def whole_number(text: str) -> int:
    """Return what an option holds that counts something.

    Parameters
    ----------
    text : str
        What was typed.

    Raises
    ------
    argparse.ArgumentTypeError
        For what is no whole number.
    """
    number = exact(spelled(text.strip()))
    if number is None or number.denominator != 1:
        raise argparse.ArgumentTypeError(f"a whole number such as 1000, 1e3, 1_000 or 1k is needed; got {text!r}")
    return int(number)


def real_number(text: str) -> float:
    """Return what an option holds that measures something.

    Parameters
    ----------
    text : str
        What was typed.

    Raises
    ------
    argparse.ArgumentTypeError
        For what is no finite number.
    """
    number = exact(spelled(text.strip()))
    if number is None:
        raise argparse.ArgumentTypeError(f"a number such as 0.5, 1/2, 1e9, 1_000 or 1.3B is needed; got {text!r}")
    return float(number)
