"""A number, or an array of numbers, with its certified interval, its theorem and advice."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bounds import Interval
from bounds.provenance import Reference

from .answer import Answer, Table
from .plain_values import number_text, plain, unit_text

# -- statement -----------------------------------------------------------------------------------------

NOT_PLAIN = {"plain": False}  # a field that no record as plain values has


@dataclass(frozen=True)
class Advised:
    """A call that an answer recommends; it can be executed as it is.

    Parameters
    ----------
    call : str
        Name of the function, such as "gap".
    arguments : mapping, optional
        Its keywords.
    yours : tuple of str, optional
        Keywords that only the reader has, such as a vector "x".
    command : str, optional
        The same as a command; empty where it has none.
    """

    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    yours: tuple[str, ...] = ()
    command: str = field(default="", metadata=NOT_PLAIN)

    def in_words(self) -> str:
        """Return the call as it is typed."""
        stated = [json.dumps(value) if name == "op" else f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"rd.{self.call}({', '.join([*stated[:1], *self.yours, *stated[1:]])})"


@dataclass(frozen=True)
class Statement:
    """Everything about a number but the number.

    Parameters
    ----------
    quantity : str
        In words.
    unit : str
        "bit", "s", "step", "1".
    side : str
        "lower", "upper", "tight" or "estimate".
    theorem : str
        Name in the catalogue (``rd.certify`` takes it), or of the model.
    reference : str, optional
        Where the theorem comes from.
    status : str, optional
        How far it can be trusted.
    about : str, optional
        The quantity that the theorem bounds, in its standard words.
    needs : tuple of str, optional
        What must hold beside ``assumptions``, the rules for numbers; both in words.
    assumptions : tuple of str, optional
        Under which the number holds, in words.
    advice : str, optional
        What to do with the number.
    advised : tuple of Advised, optional
        The calls that the advice recommends.
    verdict : str, optional
        The sentence that an answer begins with, where "{value}" stands for side, number and unit.
    facts : mapping of str to str, optional
        Lines of the answer by their labels.
    assumed : tuple of str, optional
        What the caller did not say, with the value that was taken.
    left_out : str, optional
        What the model does not cover, in one line.
    formula : str, optional
        In LaTeX.
    at : mapping, optional
        The arguments as they were read.
    function : callable or None, optional
        The number as a function of those of ``at`` that are numbers; pictures are drawn with it.
    """

    quantity: str
    unit: str
    side: str
    theorem: str
    reference: str = ""
    status: str = ""
    about: str = ""
    needs: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    advice: str = ""
    advised: tuple[Advised, ...] = ()
    verdict: str = field(default="", metadata=NOT_PLAIN)
    facts: Mapping[str, str] = field(default_factory=dict, metadata=NOT_PLAIN)
    assumed: tuple[str, ...] = ()
    left_out: str = ""
    formula: str = ""
    at: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False, metadata=NOT_PLAIN)


def scope(statement: Statement) -> str:
    """Return what the theorem is about and needs, as a sentence and a space; empty where neither is stated.

    Parameters
    ----------
    statement : Statement
        What the numbers mean and where they come from.
    """
    about = f"It is about the {statement.about}" if statement.about else ""
    needs = f"it needs: {'; '.join(statement.needs)}" if statement.needs else ""
    sentence = ", and ".join(part for part in (about, needs) if part)
    return f"{sentence[:1].upper()}{sentence[1:]}.  " if sentence else ""


# -- numbers of a theorem ------------------------------------------------------------------------------

SIDES = {"lower": "at least", "upper": "at most", "tight": "exactly", "estimate": "about"}


MODELS = {  # what no Bound has the name of: a bound whose source it shares
    "tau_star": ("pasgd_runtime", "Theorem 2"),
    "tau_convex": ("pasgd_convex_sharp", ""),
    "tau_curved": ("pasgd_smooth_sharp", ""),
    "tau_third_order": ("pasgd_third_order", ""),
    "runtime_model": ("pasgd_runtime", "Section 3"),
}


def reference_of(name: str) -> Reference | None:
    """Return the source of a Bound, of a model of ``tau`` and ``runtime``, or of a key of the bibliography, or None.

    Parameters
    ----------
    name : str
        As an answer states it.
    """
    from bounds.bibliography import entries
    from bounds.catalogue import all_bounds

    bound, place = MODELS.get(name, (name, ""))
    if bound in all_bounds():
        reference = all_bounds()[bound].reference
        return replace(reference, where=place) if place else reference
    return Reference(name) if name in entries() else None


def _status_text(statement: Statement) -> str:
    """Return status, name and the first word of the source, which is its key in the bibliography."""
    source = statement.reference.partition(",")[0]
    name = f"{statement.theorem} ({source})" if source else statement.theorem
    return f"{statement.status}: {name}" if statement.status else name


class Stated:
    """The parts that scalars and arrays share."""

    statement: Statement

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return self.statement.unit

    @property
    def theorem(self) -> str:
        """The name of the theorem or model behind it."""
        return self.statement.theorem

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold, in words."""
        return self.statement.assumptions

    def latex(self, *, value: bool = False) -> str:
        """Return the formula in LaTeX.

        Parameters
        ----------
        value : bool, optional
            Whether the number follows, with its unit.
        """
        return f"{self.statement.formula} {self._value_in_latex()}".strip() if value else self.statement.formula

    def bibtex(self) -> str:
        """Return BibTeX entries of the theorem's source and of ratedist."""
        from bounds.bibliography import cited

        reference = reference_of(self.theorem)
        return cited([] if reference is None else [(self.theorem, reference)])

    def _value_in_latex(self) -> str:
        raise NotImplementedError

    @property
    def needs(self) -> tuple[str, ...]:
        """The hypotheses of the theorem, in words."""
        return self.statement.needs

    def explain(self) -> str:
        """Return one line: the number, its interval, its theorem, where that holds, and what to do."""
        s = self.statement
        source = ", ".join(part for part in (s.theorem, s.status, s.reference) if part)
        head = f"{s.quantity[:1].upper()}{s.quantity[1:]}: {SIDES[s.side]} {self._shown()}"
        return f"{head} ({self._interval_text()}; {source}).  {scope(s)}{s.advice}".strip()

    @property
    def verdict(self) -> str:
        """The sentence that the answer begins with."""
        shown = f"{SIDES[self.statement.side]} {self._in_verdict()}"
        template = self.statement.verdict or f"{{value}}: {self.statement.quantity}."
        return template.replace("{value}", shown[:1].upper() + shown[1:])

    def answer(self) -> Answer:
        """Return the number as a sentence to act on, with facts and what was assumed."""
        s = self.statement
        tables = self._tables()
        advised = next((each for each in s.advised if each.command), Advised(""))
        words = "" if s.advice in s.facts.values() else s.advice
        advice = "measure a compressor" if advised.yours else words
        return Answer(
            verdict=self.verdict,
            facts={**s.facts, "status": _status_text(s), **({} if tables else self._precision())},
            tables=tables,
            left_out=s.left_out,
            assumed=s.assumed,
            follow_up=advice,
            command=advised.command,
            evidence={
                "theorem": ", ".join(part for part in (s.theorem, s.status, s.reference) if part),
                "interval": self._interval_text(),
                "it is about": s.about,
                "needs": s.needs,
                "assuming": s.assumptions,
                "what to do": f"{advice}: {advised.command}" if advised.command else s.advice,
            },
        )

    def _precision(self) -> dict[str, str]:
        """Return how far the number can be from the theorem's value, as a fact."""
        return {"interval": self._interval_text()}

    def _in_verdict(self) -> str:
        return self._shown()

    def _tables(self) -> tuple[Table, ...]:
        return ()

    def _shown(self) -> str:
        raise NotImplementedError

    def _interval_text(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        s = self.statement
        rows = {
            "interval": self._interval_text(),
            "theorem": " ".join(part for part in (s.theorem, s.status and f"({s.status})", s.reference) if part),
            "it is about": s.about,
            "needs": "; ".join(s.needs),
            "assuming": "; ".join(s.assumptions),
            "what to do": s.advice,
        }
        body = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in rows.items()
            if text
        )
        head = f"<b>{html.escape(SIDES[s.side])} {html.escape(self._shown())}</b> &mdash; {html.escape(s.quantity)}"
        return f"<div>{head}<table>{body}</table></div>"

    def plot(self, *, along: str | None = None, ax: Any = None) -> Any:
        """Draw the theorem's value along one argument, with this point marked; returns the matplotlib axes."""
        from ..drawing import plot_along

        return plot_along(self, along, ax)


# -- one number ----------------------------------------------------------------------------------------

ROUNDED = 1e-9  # relative, below the digits that are shown


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

    def __new__(
        cls,
        value: float,
        *,
        statement: Statement | Callable[[], Statement],
        interval: Interval | None = None,
        certified: bool | None = None,
    ) -> Quantity:
        self = super().__new__(cls, value)
        ends = (-math.inf, math.inf) if interval is None else (float(interval.lo), float(interval.hi))
        parts = {"lo": ends[0], "hi": ends[1], "_state" if callable(statement) else "statement": statement}
        parts["certified"] = interval is not None if certified is None else certified
        self.__dict__.update(parts)
        return self

    @cached_property
    def statement(self) -> Statement:  # type: ignore[override]  # where it was given as a function: words cost time
        """What the number means and where it comes from."""
        statement: Statement = self.__dict__["_state"]()
        del self.__dict__["_state"]
        return statement

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is frozen; {name!r} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {"statement": self.statement} | self.__dict__
        return _revive, (type(self), float(self), parts)

    def to_dict(self) -> dict[str, Any]:
        """Return all parts as plain values that JSON can hold, infinities excepted (see ``records.to_json``)."""
        numbers = {"value": float(self), "lo": self.lo, "hi": self.hi, "certified": self.certified}
        return numbers | plain(self.statement) | {"verdict": self.verdict, "explanation": self.explain()}

    def _shown(self) -> str:
        return f"{number_text(float(self))} {unit_text(self.unit, float(self))}".strip()

    def _interval_text(self) -> str:
        ends = f"[{self.lo!r}, {self.hi!r}]" if self.certified else f"{number_text(self.lo)} to {number_text(self.hi)}"
        if self.certified:
            return f"certified in {ends}"
        return "not certified" if math.isinf(self.lo) else f"from {ends}, not certified"

    def _precision(self) -> dict[str, str]:
        if not self.certified or self.hi - self.lo > ROUNDED * abs(self):
            return super()._precision()
        return {"rounding": f"certified below {ROUNDED:.0e} of the value (interval: --explain)"}

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


# -- an array of numbers -------------------------------------------------------------------------------

MOST_NAMES = 3  # of arguments beside which both ends fit into a line


class Quantities(Stated, NDArrayOperatorsMixin):
    """An array of numbers from one theorem; behaves like its float64 array.

    Parameters
    ----------
    values : ndarray
        The numbers, any shape.
    statement : Statement
        What the numbers mean and where they come from.
    each : callable
        Computes one element with its certified interval from its index.

    Attributes
    ----------
    lo : ndarray
        Arrays of certified ends, computed element by element when first asked for.  Indexing with integers gives a
        ``Quantity``, with slices plain arrays.
    hi : ndarray
        Arrays of certified ends, computed element by element when first asked for.  Indexing with integers gives a
        ``Quantity``, with slices plain arrays.
    """

    __array_priority__ = 1

    def __init__(
        self, values: np.ndarray, *, statement: Statement, each: Callable[[tuple[int, ...]], Quantity]
    ) -> None:
        self.values = np.asarray(values, float)
        self.values.setflags(write=False)
        self.statement = statement
        self._each = each
        self._ends: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def certified(self) -> bool:
        """Whether every element has a certified interval; computes them all."""
        return bool(np.all(np.isfinite(self._enclosed()[0])))

    @property
    def lo(self) -> np.ndarray:
        """Certified lower ends."""
        return self._enclosed()[0]

    @property
    def hi(self) -> np.ndarray:
        """Certified upper ends."""
        return self._enclosed()[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape of the arguments."""
        return self.values.shape

    def _enclosed(self) -> tuple[np.ndarray, np.ndarray]:
        if self._ends is None:
            lo, hi = np.empty(self.shape), np.empty(self.shape)
            for index in np.ndindex(self.shape):
                element = self._each(index)
                value = float(self.values[index])
                lo[index], hi[index] = min(element.lo, value), max(element.hi, value)
            self._ends = lo, hi
        return self._ends

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        arrays = (i.values if isinstance(i, Quantities) else i for i in inputs)
        return getattr(ufunc, method)(*arrays, **keywords)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        selected = self.values[index]
        if np.ndim(selected):
            return selected
        spread = np.arange(self.values.size).reshape(self.shape)[index]
        return self._each(tuple(int(i) for i in np.unravel_index(int(spread), self.shape)))

    def to_dict(self) -> dict[str, Any]:
        """As ``Quantity.to_dict``, with lists."""
        ends = {"lo": self.lo.tolist(), "hi": self.hi.tolist(), "certified": self.certified}
        return (
            {"value": self.values.tolist()}
            | ends
            | plain(self.statement)
            | {"verdict": self.verdict, "explanation": self.explain()}
        )

    def _shown(self) -> str:
        return f"{self.values.size} values from {number_text(self.values.min())} to " + (
            f"{number_text(self.values.max())} {unit_text(self.unit)}".strip()
        )

    def _in_verdict(self) -> str:
        ends = f"{number_text(self.values.min())} to {number_text(self.values.max())}"
        return f"{ends} {unit_text(self.unit)}".strip()

    def _interval_text(self) -> str:
        return "certified element by element in .lo, .hi"

    def _tables(self) -> tuple[Table, ...]:
        names = [name for name, value in self.statement.at.items() if isinstance(value, np.ndarray)]
        unit = "" if self.unit == "1" else f" [{self.unit}]"
        ends = ("from", "to") if len(names) < MOST_NAMES else ()
        rows = []
        for element in map(self._each, np.ndindex(self.shape)):
            point = [number_text(float(element.statement.at[name])) for name in names]
            numbers = [number_text(float(element)), *([repr(element.lo), repr(element.hi)] if ends else [])]
            rows.append((*point, *numbers))
        return (Table((*names, f"value{unit}", *ends), tuple(rows)),)

    def _value_in_latex(self) -> str:
        raise ValueError(
            f"value=True needs one number; got {self.values.size}: index the result first, as in result[0]"
        )

    def __repr__(self) -> str:
        return f"Quantities({np.array2string(self.values, threshold=8)} {unit_text(self.unit)}, {self.theorem})"
