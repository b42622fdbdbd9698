"""Choose the member of an operator family with a given number of bits per coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from .allocation import FINE, Members, allocate
from .catalogue import parse, specification
from .combinators.scope import LayerOperators
from .inputs import canonical
from .key import Key
from .operator import Operator
from .random import normal
from .rate import Rate

SAMPLE = 2**17
CLOSE = 2e-3  # relative tolerance of the bits
MOST_TRIES = 40
FARTHEST = 2.0


def for_bits(
    family: str | Operator,
    bits: float,
    *,
    like: torch.Tensor | np.ndarray | None = None,
    layers: Sequence[int] | None = None,
) -> Operator:
    """Return the operator of a family whose messages are nearest to the given bits per coordinate.

    Each family has one field that controls its bits (``Operator.rate``); the others are unchanged.  Bits are those of
    one message, everything counted.  A field of whole numbers is taken where bits are nearest by their ratio
    (the finest of those with equal bits), any other field within 0.2 %.

    Parameters
    ----------
    family : str or Operator
        Specification such as "qsgd" or "tcdq:states=64", or an operator; its own value of the field does not matter.
    bits : float, bits
        Bits per coordinate, > 0.
    like : tensor or ndarray or None, optional
        The vector that is sent, shape (d,); by default 2^17 Gaussian numbers.
    layers : sequence of int or None, optional
        Entries of the layers that ``like`` consists of.  Each layer gets an operator of its own (water-filling), for
        the least error of all layers at these bits: the result is a ``LayerOperators`` and sends at most ``bits``.

    Raises
    ------
    ValueError
        For an unknown family, one without a field for its bits, or if the nearest is off by more than a factor of 2;
        for layers without ``like``, of other lengths, or of a family that claims no constant.

    Notes
    -----
    With layers, an unbiased family follows omega (1 + omega) v = level, v the mean square of a layer's entries; a
    contractive one follows the law of error feedback (``bounds.limits.feedback_water_filling``).  A measured v is no
    claim: what each operator claims holds for its layer alone.

    Examples
    --------
    >>> for_bits("topk", 2.0).fraction < 0.1
    True
    """
    if not (isinstance(bits, int | float) and 0 < bits < math.inf):
        raise ValueError(f"bits must be a number of bits per coordinate > 0; got bits = {bits!r}: give one such as 2")
    operator = _member(family) if isinstance(family, str) else family
    rate = type(operator).rate
    if rate is None:
        raise ValueError(
            f"{specification(operator)} must have a field that controls its bits; got none: leave bits out"
        )
    if layers is not None:
        return _for_layers(operator, bits, like, tuple(layers))
    x = normal(Key(0), SAMPLE).astype(np.float32) if like is None else canonical(like)

    def spent(tried: Operator) -> float:
        return tried.encode(x, key=Key(0)).bits / x.size

    def member(value: int | float) -> Operator:
        return replace(operator, **{rate.field: value})  # type: ignore[type-var]

    nearest, reached = _nearest(bits, rate, member, spent)
    if not bits / FARTHEST <= reached <= bits * FARTHEST:
        raise ValueError(
            f"{specification(nearest)} is the nearest of its family to {bits:g} bits per coordinate and sends "
            f"{reached:.4g} at d = {x.size}: ask for bits within a factor of {FARTHEST:g}"
        )
    return nearest


def _for_layers(
    operator: Operator, bits: float, like: torch.Tensor | np.ndarray | None, layers: tuple[int, ...]
) -> LayerOperators:
    """Return an operator for each layer of ``like``, which together send at most the given bits per coordinate."""
    if like is None:
        raise ValueError("layers need the variances of a vector; got like = None: pass a gradient as like")
    x = canonical(like)
    if not layers or min(layers) < 1 or sum(layers) != x.size:
        raise ValueError(
            f"layers must be lengths >= 1 with the sum d = {x.size}; got {layers}: give the size of each tensor"
        )
    cuts = np.cumsum(layers)[:-1]
    variances = [float(np.mean(np.square(part, dtype=np.float64))) for part in np.split(x, cuts)]

    def combined(operators: Sequence[Operator]) -> LayerOperators:
        return LayerOperators(operators[0], layers, tuple(operators))

    def spent(operators: Sequence[Operator]) -> float:
        return combined(operators).encode(x, key=Key(0)).bits

    return combined(allocate(Members(operator, FINE), variances, layers, bits * x.size, spent))


def _member(family: str) -> Operator:
    """Return an operator of a family; fill in a value if the controlling field has no default."""
    try:
        return parse(family)
    except ValueError:
        from .catalogue import all_operators

        name, _, stated = family.partition(":")
        rate = all_operators()[name].rate if name in all_operators() else None
        if rate is None:
            raise
        return parse(f"{name}:{rate.field}={rate.at(0.5)!r}" + (f",{stated}" if stated else ""))


def _nearest(
    bits: float, rate: Rate, member: Callable[[int | float], Operator], spent: Callable[[Operator], float]
) -> tuple[Operator, float]:
    """Return the member whose bits are nearest in ratio, and those bits."""
    reached: dict[int | float, float] = {}

    def measured(value: int | float) -> float:
        if value not in reached:
            reached[value] = spent(member(value))
        return reached[value]

    nearest = _last(bits, rate, measured)
    if rate.is_whole:
        step = 1 if rate.many > rate.few else -1
        above = nearest if nearest == rate.many else nearest + step
        nearest = min((nearest, above), key=lambda value: abs(math.log(measured(value) / bits)))
        nearest = _last(measured(nearest), rate, measured)
    return member(nearest), measured(nearest)


def _last(bits: float, rate: Rate, measured: Callable[[int | float], float]) -> int | float:
    """Find by bisection the value of most bits that stays within the given bits."""
    low, high = 0.0, 1.0
    if measured(rate.at(high)) <= bits:
        return rate.at(high)
    for _ in range(MOST_TRIES):
        if rate.is_whole and abs(rate.at(high) - rate.at(low)) <= 1:
            break
        middle = (low + high) / 2
        reached = measured(rate.at(middle))
        if not rate.is_whole and abs(reached - bits) <= CLOSE * bits:
            return rate.at(middle)
        low, high = (middle, high) if reached <= bits else (low, middle)
    return rate.at(low)
