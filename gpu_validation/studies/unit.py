"""Units of studies: their axes, and their texts."""

from __future__ import annotations

import inspect
import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

PATTERNS = {int: r"(\d+)", str: "(.+?)"}
EACH = "each"  # a kind whose name is not part of the text: the only one of its study


@dataclass(frozen=True)
class Kind:
    """A kind of units: what one method measures, by the values of its arguments.

    The text of a unit, in records and on the screen, is KIND:AXIS:AXIS.  Values that contain colons are read as
    short as possible, except the last.

    Parameters
    ----------
    name : str
        Word before the axes; "each" leaves it out.
    make : callable
        Named tuple of the axes.
    types : tuple of type
        ``int`` or ``str``, one for each axis.
    """

    name: str
    make: Callable[..., Any]
    types: tuple[type, ...]

    @classmethod
    def of(cls, name: str, method: Callable[..., Any]) -> Kind:
        """Return the kind whose axes are the arguments of a method."""
        axes = [axis for axis in inspect.signature(method).parameters if axis != "self"]
        hints = get_type_hints(method)
        return cls(name, namedtuple(name, axes), tuple(hints[axis] for axis in axes))

    @property
    def _prefix(self) -> str:
        return "" if self.name == EACH else f"{self.name}:"

    @property
    def shape(self) -> str:
        """Text of the kind, with the axes in capitals."""
        return self._prefix + ":".join(self.make._fields).upper()  # type: ignore[attr-defined]

    def text(self, *values: str | int) -> str:
        """Return the text of a unit.

        Raises
        ------
        ValueError
            If the text would be read as another unit.
        """
        text = self._prefix + ":".join(map(str, values))
        if self.read(text) != values:
            raise ValueError(
                f"a unit must be read as what was written; {values!r} is written {text}: choose other names"
            )
        return text

    def read(self, text: str) -> Any:
        """Return the unit with a text, or None if the text is of another kind."""
        pattern = re.escape(self._prefix) + ":".join(PATTERNS[kind] for kind in self.types)
        match = re.fullmatch(pattern, text, re.DOTALL)
        return match and self.make(*(kind(word) for kind, word in zip(self.types, match.groups(), strict=True)))
