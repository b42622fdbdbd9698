"""Bits for the layers of a model: many where gradients are large, by the law of equal slope.

The laws are proved in ``bounds.limits.layers``.  They are for the variances of the source.  What an operator claims
holds for each layer by itself, whatever its variance is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np

from bounds.claims import Contractive, NoClaim, Unbiased
from bounds.special.allocation import feedback_level, feedback_roots, unbiased_constants, unbiased_level

from .operator import Operator, Size

COARSE, FINE = 1, 256  # fineness of constants and levels
PLACES, LEVELS = 320, 64  # of a rate, and of a doubling of the level; both times the fineness
DOUBLINGS = 64  # of the level, each way from the largest variance
CLOSE = 2e-3  # relative distance from the bits at which the search ends
MOST_TRIES = 40
LAWS = 4  # tries that follow the Gaussian limits, before plain bisection
SMALLEST = 2.0**-60  # variance of a layer over the largest
NO_CONSTANT = "{} must claim a constant, by which bits are assigned; got none at d = {}: take a family such as tcdq"


@dataclass(frozen=True)
class WaterFilling:
    """Give the layers of a model different numbers of bits, as ``register(model, "tcdq", allocation=...)`` does.

    The hook measures the variance of each layer from the decoded mean, which is equal on all ranks.  It gives all
    layers the same constant in the first step.  It assigns the bits again after the first step, and then after every
    ``every`` steps.

    Parameters
    ----------
    bits : float, bits
        Bits per coordinate of one message, > 0, as the operators declare them, headers counted.
    every : int, optional
        Steps over which variances are averaged, >= 1.

    Raises
    ------
    ValueError
        For a parameter out of range.
    """

    bits: float
    every: int = 16

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, int | float) and 0 < self.bits < math.inf):
            raise ValueError(f"bits must be a number of bits per coordinate > 0; got bits = {self.bits!r}: give 2.0")
        if not isinstance(self.every, int) or self.every < 1:
            raise ValueError(f"every must be a whole number of steps >= 1; got every = {self.every!r}: give 16")


@dataclass(frozen=True)
class Members:
    """The operators of one family, from the fewest bits to the most, on a grid.

    Parameters
    ----------
    operator : Operator
        Any member; its own value of the field that controls the bits does not matter.
    fineness : int
        ``COARSE`` or ``FINE``.

    Raises
    ------
    ValueError
        For a family without a field for its bits, or without a claim.
    """

    operator: Operator
    fineness: int

    def __post_init__(self) -> None:
        if type(self.operator).rate is None:
            raise ValueError(
                f"{self.operator.name} must have a field that controls its bits; got none: take a family such as tcdq"
            )
        if isinstance(self.at(PLACES * self.fineness).claim(1), NoClaim):
            raise ValueError(NO_CONSTANT.format(self.operator.name, 1))

    @cached_property
    def is_unbiased(self) -> bool:
        """Whether the family is unbiased; it is contractive if not."""
        return isinstance(self.at(PLACES * self.fineness).claim(1), Unbiased)

    def at(self, place: int) -> Operator:
        """Return the member at a place of the grid; 0 has the fewest bits."""
        rate = type(self.operator).rate
        assert rate is not None
        value = rate.at(place / (PLACES * self.fineness))
        return cast(Operator, replace(cast(Any, self.operator), **{rate.field: value}))

    def within(self, constant: float, d: int) -> Operator:
        """Return the member of fewest bits whose omega or alpha at dimension d is at most ``constant``.

        Raises
        ------
        ValueError
            For a family that claims nothing at dimension d.
        """
        low, high = 0, PLACES * self.fineness
        if _constant(self.at(high), d) == math.inf:
            raise ValueError(NO_CONSTANT.format(self.operator.name, d))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if _constant(self.at(middle), d) <= constant else (middle + 1, high)
        return self.at(low)


@lru_cache(maxsize=1 << 16)
def _constant(operator: Operator, d: int) -> float:
    claim = operator.claim(d)
    if isinstance(claim, Unbiased):
        return claim.omega
    return claim.alpha if isinstance(claim, Contractive) else math.inf


def allocate(
    members: Members,
    variances: Sequence[float],
    sizes: Sequence[int],
    bits: float,
    spent: Callable[[Sequence[Operator]], float],
) -> tuple[Operator, ...]:
    """Return the operator of each layer at the lowest level at which all of them spend at most ``bits``.

    Parameters
    ----------
    members : Members
        The family.  Unbiased: omega (1 + omega) variance = level.  Contractive, with error feedback: s = sqrt(alpha),
        s^2/(1 - s)^3 = level/variance.
    variances : sequence of float
        Of one coordinate of each layer, >= 0.
    sizes : sequence of int
        Coordinates of each layer.
    bits : float, bits
        In all.
    spent : callable
        Bits of the layers' messages, in all.

    Raises
    ------
    ValueError
        If the fewest bits of the family are more.
    """
    largest = max(variances)
    shares = np.array([max(v / largest, SMALLEST) if largest > 0 else 1.0 for v in variances])
    levels = LEVELS * members.fineness

    def operators(number: int) -> tuple[Operator, ...]:
        level = 2.0 ** (number / levels)
        constants = unbiased_constants(level, shares) if members.is_unbiased else feedback_roots(level / shares) ** 2
        return tuple(members.within(float(c), d) for c, d in zip(constants, sizes, strict=True))

    low, high = -DOUBLINGS * levels, DOUBLINGS * levels  # at low more is spent than bits, at high at most bits
    if (fewest := spent(operators(high))) > bits:
        total = sum(sizes)
        raise ValueError(
            f"bits must be at least {fewest / total:.4g} per coordinate for these {len(sizes)} layers, headers "
            f"counted; got bits = {bits / total:.4g}: give more"
        )
    target = bits  # of the Gaussian limits; the messages spend more, by about the same number at every level
    for attempt in range(MOST_TRIES):
        number = (low + high) // 2
        if attempt < LAWS:
            foreseen = math.ceil(levels * math.log2(_level(members, shares, sizes, target)))
            number = foreseen if low < foreseen < high else number
        amount = spent(operators(number))
        low, high = (low, number) if amount <= bits else (number, high)
        if high - low <= 1 or 0 <= bits - amount <= CLOSE * bits:
            break
        target = max(target + bits - amount, CLOSE * bits)
    return operators(high)


def _level(members: Members, shares: np.ndarray, sizes: Sequence[int], bits: float) -> float:
    """Return the level at which the Gaussian limits of all layers are ``bits``."""
    if members.is_unbiased:
        return unbiased_level(shares.tolist(), sizes, bits)
    return feedback_level((shares * np.asarray(sizes)).tolist(), sizes, bits)


def declared_bits(size: Size, d: int) -> float:
    """Return the expected length of a message as declared, in bits; 1 bit per coordinate if nothing is declared."""
    declared = (bits for bits in (size.exact, size.expected_upper, size.worst_case, d) if bits is not None)
    return float(next(declared))
