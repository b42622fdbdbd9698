"""A closed interval that is known, or measured, to hold a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

Number = int | float | Fraction


@dataclass(frozen=True)
class Interval:
    """The closed interval [lo, hi].

    Parameters
    ----------
    lo : int or float or Fraction
        The lower end, never nan.  Where the interval is an enclosure of an exact value, floats are rounded outwards, so
        that ``Fraction(interval.lo)`` is still a valid lower end.
    hi : int or float or Fraction
        The upper end, lo <= hi, never nan.

    Raises
    ------
    ValueError
        If lo > hi or if an end is nan.
    """

    lo: Number
    hi: Number

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:  # also catches nan
            raise ValueError(f"an interval needs lo <= hi; got lo = {self.lo}, hi = {self.hi}")

    def __contains__(self, value: Number) -> bool:
        return bool(self.lo <= value <= self.hi)

    @property
    def width(self) -> Number:
        """hi - lo."""
        return self.hi - self.lo

    @property
    def midpoint(self) -> float:
        """The float nearest to the middle."""
        return float(self.lo) + (float(self.hi) - float(self.lo)) / 2

    @property
    def relative_width(self) -> float:
        """Width over the smallest magnitude inside; 0 for a point, infinite if the interval straddles 0."""
        if self.lo == self.hi:
            return 0.0
        if self.lo <= 0 <= self.hi:
            return math.inf
        return float(Fraction(self.hi) - Fraction(self.lo)) / min(abs(float(self.lo)), abs(float(self.hi)))

    @classmethod
    def outwards(cls, lo: Fraction, hi: Fraction) -> Interval:
        """Return the narrowest interval of floats that contains the rationals [lo, hi].

        Parameters
        ----------
        lo : Fraction
            Lower end, rounded down to a float.
        hi : Fraction
            Upper end, rounded up to a float.
        """
        return cls(_float_below(lo), -_float_below(-hi))


def _float_below(value: Fraction) -> float:
    """Return the largest float not above an exact rational (minus infinity if there is none)."""
    try:
        nearest = float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.nextafter(math.inf, 0)
    if math.isinf(nearest):
        return -math.inf if value < 0 else math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
