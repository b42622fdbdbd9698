"""From a Bound and arguments to a record: certified for scalars, element by element for arrays."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp

from bounds import AssumptionViolated, Bound, Interval, NotCertifiable, Property, all_bounds, symbols

from ..numbers import broadcast_shape, read
from ..records import Advised, Quantities, Quantity, Statement

MOST_POINTS = 10_000  # of an array of arguments that each need an integral
REMEDY_OUTSIDE = "the theorem says nothing there; change one of them"


def statement_of(
    bound: Bound, at: Mapping[str, Any], advice: str = "", advised: tuple[Advised, ...] = (), **said: Any
) -> Statement:
    """Return what a Bound says, without its number.

    Parameters
    ----------
    **said
        Further fields of the statement.
    """
    function = partial(value_at, bound.name)
    return replace(_fixed_part(bound), advice=advice, advised=advised, at=dict(at), function=function, **said)


def value_at(theorem: str, **point: float) -> Any:
    """Return the float64 value of a Bound of the catalogue."""
    return all_bounds()[theorem](**point)


@lru_cache(maxsize=256)
def _fixed_part(bound: Bound) -> Statement:
    domains = (symbols.notation(s).domain.text(s.name) for s in bound.parameters)
    return Statement(
        quantity=bound.quantity,
        unit=bound.unit,
        side="estimate" if bound.setting.known_up_to else bound.side.value,
        theorem=bound.name,
        reference=str(bound.reference),
        status=bound.status.value,
        about=bound.setting.about(),
        needs=bound.setting.hypotheses(),
        assumptions=(*domains, *(relation_text(r) for r in bound.assuming), *filter(None, (bound.note,))),
        formula=bound.latex(),
    )


def require_setting(bound: Bound, setting: Iterable[str] | None, *implied: Property) -> None:
    """Refuse a bound whose hypotheses do not follow from what the caller says to hold.

    Parameters
    ----------
    setting : iterable of str or None
        Names of properties; None leaves the hypotheses to the reader, who sees them with the answer.
    *implied : Property
        What the call itself says.

    Raises
    ------
    ValueError
        For unknown names and for what is missing.
    """
    if setting is None:
        return
    given = [setting] if isinstance(setting, str) else list(setting)
    if lacking := bound.setting.missing([*given, *implied]):
        words = "; ".join(f"{hypothesis.words} ({hypothesis.name.lower()})" for hypothesis in lacking)
        raise ValueError(f"not covered: {bound.name} needs: {words}: add what holds to setting")


def relation_text(relation: sp.Basic) -> str:
    """Return a relation as it is typed: ``eta*L <= 1``."""
    return sp.sstr(relation)


def evaluate(bound: Bound, at: Mapping[str, Any], advice: str = "") -> Quantity | Quantities:
    """Return the value of a Bound; arguments are read as in ``numbers.read``.

    Raises
    ------
    ValueError
        For bad arguments and outside the assumptions.
    ArithmeticError
        Where no enclosure can be given.
    """
    return evaluate_read(bound, {name: read(name, value) for name, value in at.items()}, advice)


def evaluate_read(
    bound: Bound,
    given: Mapping[str, str | np.ndarray],
    advice: str = "",
    advised: tuple[Advised, ...] = (),
    **said: Any,
) -> Quantity | Quantities:
    """Return the same for arguments that have been read already.

    Parameters
    ----------
    **said
        Further fields of the statement.
    """
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    if len(texts) == len(given):
        interval = enclose(bound, texts)
        statement = statement_of(bound, given, advice, advised, **said)
        return Quantity(interval.midpoint, statement=statement, interval=interval)
    shape = broadcast_shape(dict(given))
    arrays = {name: float(Fraction(v)) if isinstance(v, str) else v for name, v in given.items()}
    with readable(bound):
        values = np.broadcast_to(bound(**arrays), shape).copy()

    def each(index: tuple[int, ...]) -> Quantity:
        point = {
            name: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index]))
            for name, v in given.items()
        }
        element = evaluate_read(bound, point, advice, advised, **said)
        assert isinstance(element, Quantity)
        return element

    return Quantities(values, statement=statement_of(bound, given, advice, advised, **said), each=each)


def enclose(bound: Bound, at: Mapping[str, str]) -> Interval:
    """Return the enclosure at exact texts.

    Raises
    ------
    ValueError
        For arguments outside the assumptions or where there is no enclosure.
    """
    with readable(bound):
        return bound.enclose(**at)


class readable:  # noqa: N801  reads as a word after ``with``
    """Turns the errors of a Bound into sentences with a remedy."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AssumptionViolated):
            raise ValueError(f"{error}: {REMEDY_OUTSIDE}") from None
        if isinstance(error, NotCertifiable):
            raise ValueError(
                f"{self.bound.name} cannot be certified at this point ({error}); "
                f"take the float value bounds.all_bounds()[{self.bound.name!r}](...) instead"
            ) from None
        if isinstance(error, TypeError) and str(error).startswith(self.bound.name):
            raise ValueError(f"{error}: give exactly these keywords") from None


def catalogue_bound(name: str) -> Bound:
    """Return a Bound by name.

    Raises
    ------
    ValueError
        For an unknown one, with the nearest names.
    """
    by_name = all_bounds()
    if name not in by_name:
        near = difflib.get_close_matches(str(name), by_name, 3, 0.6)
        remedy = f"try {' or '.join(near)}, or see" if near else "see"
        raise ValueError(f"theorem must be a name of the catalogue; got {name!r}: {remedy} ratedist certify --list")
    return by_name[name]


def spread(
    given: dict[str, Any], one: Callable[[dict[str, str]], Quantity], statement: Statement
) -> Quantity | Quantities:
    """Return a Quantity at texts, or Quantities over the broadcast arrays."""
    if all(isinstance(value, str) for value in given.values()):
        return one(given)
    shape = broadcast_shape(given)
    size = int(np.prod(shape))
    if size > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points a call; got {size}: split it into several calls")

    by_index = {
        index: one(
            {n: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index])) for n, v in given.items()}
        )
        for index in np.ndindex(shape)
    }
    values = np.array([float(result) for result in by_index.values()]).reshape(shape)
    return Quantities(values, statement=statement, each=by_index.__getitem__)
