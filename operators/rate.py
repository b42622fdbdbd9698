"""The field of an operator family that controls the length of its messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """One field and the ends of the range in which the message length is monotone in it.

    Parameters
    ----------
    field : str
        Name of the field.
    few : int or float
        Value at the end of few bits, > 0; an int where the field takes whole numbers only.
    many : int or float
        Value at the end of many bits, > 0.
    """

    field: str
    few: int | float
    many: int | float

    @property
    def is_whole(self) -> bool:
        """Whether the field takes whole numbers only."""
        return isinstance(self.few, int)

    def at(self, place: float) -> int | float:
        """Return the value at a position between the ends, on a logarithmic scale, to four digits.

        Parameters
        ----------
        place : float
            0 at the end of few bits, 1 at that of many.
        """
        if place in (0, 1):
            return self.many if place else self.few
        value = self.few ** (1 - place) * self.many**place
        if self.is_whole:
            return round(value)
        least, most = sorted((self.few, self.many))
        return min(max(float(f"{value:.4g}"), least), most)
