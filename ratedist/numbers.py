"""Reading what a user typed: exact decimals, whole numbers, arrays, each checked where it enters.

A float counts as the decimal that it prints, so that 0.1 means one tenth in Python, on the command line and in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from bounds import symbols
from bounds.numbers import Number as Number
from bounds.numbers import Numbers as Numbers
from bounds.numbers import Vector as Vector
from bounds.spelling import LARGEST, LARGEST_EXPONENT, MOST_CHARACTERS, exact, spelled
from bounds.symbols import Domain

MOST_ELEMENTS = 10**6

REMEDIES = {
    "d": "give the number of coordinates as a whole number, such as d=1e6",
    "alpha": "give a contraction constant such as alpha=0.1; an operator without one below 1 promises nothing",
    "omega": "give the variance constant of an unbiased operator, such as omega=1",
    "bits": "give the length of one message, such as bits=2e6",
    "eta": "give a learning rate such as eta=0.05",
    "L": "give the smoothness constant of the loss, such as L=1",
    "sigma2": "give the variance of one worker's mini-batch gradient, such as sigma2=1",
    "gap": "give the loss at the start minus its infimum, such as gap=1",
    "tau": "give the local steps between two averagings as a whole number, such as tau=8",
    "time_s": "give the time budget in seconds, such as time_s=3600",
    "workers": "give the number of workers as a whole number, such as workers=16",
    "local_weight": "give the share of a worker's own model that a merge keeps, such as local_weight=0.5",
    "nodes": "give the number of nodes as a whole number, such as nodes=8",
    "gpus_per_node": "give the workers of one node as a whole number, such as gpus_per_node=8",
    "count": "give the number of ports used together, such as count=8",
    "level": "give the confidence of the intervals, such as level=0.9",
    "parts": "give the fragments of the model as a whole number, such as parts=4",
    "sums_at_once": "give the sums that one group makes at the same time as a whole number: 1 for NCCL, 2 for gloo",
    "backward_share": "give the backward pass's seconds over those of a step, such as backward_share=0.6",
    "buckets": "give the messages of a gradient as a whole number, such as buckets=4",
    "steps": "give the synchronous steps to the loss as a whole number, such as steps=10000",
    "reached": "give the share of the line rate that long transfers reach, such as reached=0.8",
    "bandwidth_bit_per_s": "give the bandwidth of one link, such as bandwidth_bit_per_s=1e10",
    "latency_s": "give the seconds of one hop besides its bytes, such as latency_s=50e-6",
    "step_s": "give the mean seconds of one local step, such as step_s=0.08",
    "target": "give an accuracy such as target=0.1",
    "condition": "give a condition number L/mu such as condition=100",
    "encode_s_per_coordinate": "give the seconds of encoding one coordinate, such as 8.5e-9",
    "decode_s_per_coordinate": "give the seconds of decoding one coordinate, such as 4.3e-9",
}

POSITIVE_WHOLE = Domain(1, open_below=False, integer=True)
EXTRA_DOMAINS = {
    "workers": POSITIVE_WHOLE,
    "tau": POSITIVE_WHOLE,
    "nodes": POSITIVE_WHOLE,
    "gpus_per_node": POSITIVE_WHOLE,
    "count": POSITIVE_WHOLE,
    "level": Domain(0, 1),
    "parts": POSITIVE_WHOLE,
    "buckets": POSITIVE_WHOLE,
    "sums_at_once": POSITIVE_WHOLE,
    "backward_share": Domain(0, 1, open_above=False),
    "steps": POSITIVE_WHOLE,
    "local_weight": Domain(0, 1, open_below=False),
    "reached": symbols.POSITIVE,
    "bandwidth_bit_per_s": symbols.POSITIVE,
    "target": symbols.POSITIVE,
    "condition": symbols.AT_LEAST_ONE,
    "step_s": symbols.NONNEGATIVE,
    "encode_s_per_coordinate": symbols.NONNEGATIVE,
    "decode_s_per_coordinate": symbols.NONNEGATIVE,
}


class ArgumentError(ValueError):
    """A value that an argument cannot have.

    Parameters
    ----------
    sentence : str
        Rule, value and remedy.
    argument : str, optional
        Its name.
    """

    def __init__(self, sentence: str, argument: str = "") -> None:
        super().__init__(sentence)
        self.argument = argument


def refusal(name: str, rule: str, got: Any, where: str = "", remedy: str = "") -> ArgumentError:
    """Return the error for one argument: value, rule, and a remedy, by default that of the argument."""
    shown = str(got)
    shown = shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 3] + "..."
    remedy = remedy or REMEDIES.get(name, f"give {name} inside that range")
    return ArgumentError(f"{name} must satisfy {rule}; got {name} = {shown}{where}: {remedy}", name)


def domain_of(name: str) -> Domain:
    """Return the range of an argument, from the notation table or the calculator's own."""
    return EXTRA_DOMAINS.get(name) or symbols.TABLE[name].domain


def read(name: str, value: Any, domain: Domain | None = None) -> str | np.ndarray:
    """Return one argument: a decimal text that is exact, or an array of float64.

    Parameters
    ----------
    value
        Int, float, Fraction, Decimal, text ("0.3", "1e9", "1_000", "1.3B" for 1.3e9, "1/3"), or an array of numbers.
    domain : Domain or None, optional
        The range, unless it is that of the symbol of this name.

    Raises
    ------
    ValueError
        Naming value, rule and remedy, for what is no number, lies outside the range of the symbol, is larger than
        10^300 in magnitude, or has more than 10^6 elements.
    """
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        return _array(name, value, domain or domain_of(name))
    if getattr(value, "ndim", 0):
        return _array(name, value, domain or domain_of(name))
    return number(name, value, domain)


def meaning(name: str) -> str:
    """Return what an argument is, in words, from the notation table or the calculator's own; empty if unknown."""
    if name in symbols.TABLE:
        row = symbols.TABLE[name]
        return f"{row.meaning} ({row.unit})" if row.unit not in ("", "1") else row.meaning
    return REMEDIES.get(name, "").removeprefix("give ")


def number(name: str, value: Any, domain: Domain | None = None) -> str:
    """Return one scalar argument as an exact decimal text (or p/q); see ``read``."""
    domain = domain or domain_of(name)
    read_off = _exact(value)
    if read_off is None:
        raise refusal(name, domain.text(name), repr(value))
    text, stated = read_off
    if not domain.contains(stated):
        raise refusal(name, domain.text(name), value)
    return text


def whole(name: str, value: Any) -> int:
    """Return one scalar argument that counts something; ``1e3`` is read as 1000."""
    stated = Fraction(number(name, value))
    if stated.denominator != 1:
        raise refusal(name, f"{name} whole", value)
    return int(stated)


def real(name: str, value: Any) -> float:
    """Return one scalar argument as a float."""
    return float(Fraction(number(name, value)))


def _exact(value: Any) -> tuple[str, Fraction] | None:
    """Return decimal text and value of a scalar, or None if it is no finite number of reasonable size."""
    if hasattr(value, "item") and not getattr(value, "ndim", 0):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal | str):
        return None
    if isinstance(value, int) and abs(value) > LARGEST:
        return None
    text = repr(float(value)) if isinstance(value, float) else spelled(str(value).strip())
    limit = 2 * LARGEST_EXPONENT if isinstance(value, int | Fraction) else MOST_CHARACTERS
    number = exact(text, most_characters=limit)
    return None if number is None else (text, number)


def _array(name: str, value: Any, domain: Domain) -> np.ndarray:
    size = int(np.prod(np.shape(value))) if hasattr(value, "shape") else len(value)
    _limit(name, size)
    if isinstance(value, list | tuple):
        value = [spelled(element.strip()) if isinstance(element, str) else element for element in value]
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        raise refusal(name, domain.text(name), value) from None
    _limit(name, array.size)
    inside = domain.mask(array)
    if not np.all(inside):
        index = tuple(int(i) for i in np.argwhere(~inside)[0])
        raise refusal(name, domain.text(name), array[index], f" at index {index}")
    return array


def _limit(name: str, size: int) -> None:
    if not 1 <= size <= MOST_ELEMENTS:
        raise ValueError(
            f"{name} must satisfy 1 <= elements <= {MOST_ELEMENTS}; got {size} elements: split it into several calls"
        )


def broadcast_shape(at: dict[str, Any]) -> tuple[int, ...]:
    """Return the common shape of all arguments.

    Raises
    ------
    ValueError
        If they do not fit or the result would be too large.
    """
    shapes = {name: np.shape(value) for name, value in at.items() if isinstance(value, np.ndarray)}
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"arrays must have shapes that broadcast; got {text}: reshape one, for example by [:, None]"
        ) from None
    size = int(np.prod(shape))
    if size > MOST_ELEMENTS:
        raise ValueError(f"a call has at most {MOST_ELEMENTS} results; got {size}: split it into several calls")
    return shape


def text_of(value: Any) -> str:
    """Return a number as a person would type it.

    Parameters
    ----------
    value : int, float or str
        The number, or a text, which stays as it is.
    """
    if not isinstance(value, float):
        return str(value)
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return re.sub(r"e([+-])0*", lambda power: "e" + power[1].strip("+"), text)
