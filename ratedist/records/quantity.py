"""One number that knows its certified interval, its theorem, and what to do."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from bounds import Interval

from .plain_values import plain
from .stated import Stated
from .statement import Statement
from .text import number_text, unit_text


class Quantity(Stated, float):
    """A float that knows where it comes from.

    Attributes
    ----------
    lo : float
        Lower end of an interval that provably contains the value if ``certified``; otherwise of the range that was
        observed, or minus infinity.  Arithmetic gives plain floats.
    hi : float
        Upper end of that interval, or infinity.
    """

    lo: float
    hi: float
    certified: bool
    statement: Statement

    def __new__(
        cls, value: float, *, statement: Statement, interval: Interval | None = None, certified: bool | None = None
    ) -> Quantity:
        self = super().__new__(cls, value)
        ends = (-math.inf, math.inf) if interval is None else (float(interval.lo), float(interval.hi))
        parts = {"lo": ends[0], "hi": ends[1], "statement": statement}
        parts["certified"] = interval is not None if certified is None else certified
        self.__dict__.update(parts)
        return self

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is frozen; {name!r} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), float(self), self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """Return all parts as plain values that JSON can hold, infinities excepted (see ``records.to_json``)."""
        numbers = {"value": float(self), "lo": self.lo, "hi": self.hi, "certified": self.certified}
        return numbers | plain(self.statement) | {"verdict": self.verdict, "explanation": self.explain()}

    def _shown(self) -> str:
        return f"{number_text(float(self))} {unit_text(self.unit, float(self))}".strip()

    def _interval_text(self) -> str:
        ends = f"[{self.lo!r}, {self.hi!r}]" if self.certified else f"[{number_text(self.lo)}, {number_text(self.hi)}]"
        if self.certified:
            return f"certified in {ends}"
        return "not certified" if math.isinf(self.lo) or math.isinf(self.hi) else f"observed in {ends}, not certified"

    def _value_in_latex(self) -> str:
        number = float(self)
        digits, _, exponent = f"{number:.6g}".partition("e")
        power = rf" \times 10^{{{int(exponent)}}}" if exponent else ""
        shown = digits.replace("inf", r"\infty") + power
        sign = "=" if float(f"{number:.6g}") == number else r"\approx"
        return f"{sign} {shown}" + (rf"\,\mathrm{{{self.unit}}}" if self.unit not in ("1", "") else "")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()}, {self._interval_text()}, {self.theorem})"

    __str__ = float.__repr__


def _revive(cls: type[Quantity], value: float, parts: dict[str, Any]) -> Quantity:
    self = float.__new__(cls, value)
    self.__dict__.update(parts)
    return self
