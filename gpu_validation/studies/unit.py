"""Units of studies as records and as texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from ..records.storage import Record

PATTERNS = {int: r"(\d+)", str: "(.+?)"}


@dataclass(frozen=True)
class Unit:
    """What one unit of a study measures; subclasses are frozen records of strings and integers.

    The text of a unit, in records and on the screen, is KIND:FIELD:FIELD; the class keyword ``kind`` sets KIND.  Fields
    that contain colons are read as short as possible, except the last.

    Raises
    ------
    ValueError
        For a unit whose text would be read as another one.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls, *, kind: str = "") -> None:
        cls.kind = kind

    def __post_init__(self) -> None:
        words = _words(type(self), str(self))
        values = tuple(getattr(self, field.name) for field in fields(self))
        if words != values:
            raise ValueError(f"a unit must be read as what was written; {self!r} is written {self}: choose other names")

    def __str__(self) -> str:
        """Return the text of the unit."""
        values = [str(getattr(self, field.name)) for field in fields(self)]
        return ":".join([self.kind, *values] if self.kind else values)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the unit of this kind with a text; None if the text is of another kind.

        Parameters
        ----------
        text : str
            Text of a unit.
        """
        words = _words(cls, text)
        return None if words is None else cls(*words)


@cache
def _pattern(kind: type[Any]) -> tuple[re.Pattern[str], tuple[type, ...]]:
    """Return the pattern of a kind's texts, and the types of its fields."""
    hints = get_type_hints(kind)
    types = tuple(hints[field.name] for field in fields(kind))
    parts = [PATTERNS[kind_of_field] for kind_of_field in types]
    return re.compile(":".join([re.escape(kind.kind), *parts] if kind.kind else parts), re.DOTALL), types


def _words(kind: type[Unit], text: str) -> tuple[str | int, ...] | None:
    pattern, types = _pattern(kind)  # type: ignore[arg-type]  # classes are hashable
    match = pattern.fullmatch(text)
    return None if match is None else tuple(t(word) for t, word in zip(types, match.groups(), strict=True))


U = TypeVar("U", bound=Unit)


def read_unit(text: str, kinds: tuple[type[U], ...]) -> U:
    """Return the unit with a text.

    Parameters
    ----------
    text : str
        Text of a unit.
    kinds : tuple of classes
        Kinds of the study.

    Raises
    ------
    ValueError
        If the text is of none of these kinds.
    """
    for kind in kinds:
        unit = kind.read(text)
        if unit is not None:
            return unit
    shapes = ", ".join(":".join([k.kind, *(f.name.upper() for f in fields(k))]).lstrip(":") for k in kinds)
    raise ValueError(f"a unit of this study must be {shapes}; got {text!r}: take one of study.units()")


def of_kind(records: Iterable[Record], kind: type[U]) -> list[tuple[U, Record]]:
    """Return the units of one kind with their records.

    Parameters
    ----------
    records : iterable of Record
        Records of any kinds, with the text of each under "unit".
    kind : class
        Kind to select.
    """
    read = [(kind.read(record["unit"]), record) for record in records]
    return [(unit, record) for unit, record in read if unit is not None]
