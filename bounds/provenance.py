"""What a bound says of itself: which side it lies on, how far it can be trusted, its source, its known values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


class Side(enum.Enum):
    """Which side of the truth the value lies on."""

    UPPER = "upper"
    LOWER = "lower"
    TIGHT = "tight"


class Status(enum.Enum):
    """How far the statement can be trusted.

    PROVED: a derivation stands in this package.  VERIFIED: checked numerically by an independent
    computation.  RECALLED: from the literature, unchecked; it never yields a verdict.
    """

    PROVED = "proved"
    VERIFIED = "verified"
    RECALLED = "recalled"


@dataclass(frozen=True)
class Reference:
    """Where a statement comes from: bibliography key, place in the source, arXiv identifier.

    Parameters
    ----------
    key : str
        Of bounds/references.bib.
    where : str, optional
        Theorem or section.
    arxiv : str or None, optional
        Number, None if there is none.
    """

    key: str
    where: str = ""
    arxiv: str | None = None

    def __str__(self) -> str:
        return ", ".join(part for part in (self.key, self.where, self.arxiv and f"arXiv:{self.arxiv}") if part)


@dataclass(frozen=True)
class Example:
    """An independently computed value at a point inside the assumptions.

    Parameters
    ----------
    at : mapping of str to int or Fraction or str
        Values of the symbols, by name.
    value : str
        Decimal string, believed to half a unit of its last digit.
    source : str
        How it was computed.
    """

    at: Mapping[str, int | Fraction | str]
    value: str
    source: str

    @property
    def interval(self) -> tuple[Fraction, Fraction]:
        """The exact interval that the written digits stand for."""
        mantissa, _, exponent = self.value.lower().partition("e")
        decimals = len(mantissa.partition(".")[2])
        half_unit = Fraction(1, 2) * Fraction(10) ** (int(exponent or 0) - decimals)
        return Fraction(self.value) - half_unit, Fraction(self.value) + half_unit
