"""The compressors: what they claim, how far a measured one is from its limit, and whether it keeps its word."""

from __future__ import annotations

import difflib
import html
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bounds.claims import NoClaim, Unbiased

from ..numbers import refusal, whole

if TYPE_CHECKING:
    from operators import Operator
    from operators.laws import Report
    from operators.outside import Announced

MOST_COORDINATES = 10**12


def operator_of(given: str | Operator) -> Operator:
    """An operator from its specification, or itself.  Raises ValueError for an unknown name, field or value.

    "mine:Coin" imports it from the module mine, in the current folder too; see ``operators.parse``.

    >>> operator_of("qsgd:4")
    QSGD(levels=4, norm='l2', bucket=None, code='sparse')
    """
    from operators import Operator, all_operators, outside, parse

    if isinstance(given, Operator):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f'an operator must be a specification such as "qsgd:4" or an Operator; got {given!r}: name one'
        )
    name = given.strip().partition(":")[0]
    from_outside = name in outside.announced(outside.OPERATORS) or outside.split(given) is not None
    if name not in all_operators() and not from_outside:
        near = difflib.get_close_matches(name, all_operators(), 3, 0.6) or ["identity", "qsgd", "tcdq"]
        shown = name if len(name) <= 32 else name[:29] + "..."
        raise ValueError(
            f"unknown operator {shown!r}; it must be a name of the catalogue: try {', '.join(near)} "
            "(all of them: ratedist operators)"
        )
    try:
        return parse(given)
    except ValueError as failure:
        raise ValueError(f"{failure} (as in tcdq:omega=1, qsgd:4, topk:0.01)") from None
    except TypeError as failure:
        raise ValueError(f"{given!r} has a value of the wrong kind ({failure}): see ratedist operators") from None


@dataclass(frozen=True)
class Entry:
    """One compressor of the catalogue at one dimension.

    operator : an example specification.  fields : its parameters with their defaults.  claim : in words; kind :
    "unbiased", "contractive" or "none", with its constant (omega or alpha).
    bits : of one message, at most on average; None if unknown.  limit : bits that the longest message of
    its class needs at its constant, and the mean over Gaussian vectors.
    randomness : "none", "private" or "shared".  summary : first line of its documentation.
    origin : the package that it comes from, with its version; "ratedist" for its own.
    """

    operator: str
    fields: str
    claim: str
    kind: str
    constant: float | None
    bits: float | None
    limit: float | None
    randomness: str
    summary: str
    origin: str = "ratedist"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Catalogue:
    """Every compressor, by name, at dimension d.

    entries : one an operator.
    """

    d: int
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        """The entries as plain values."""
        return {"d": self.d, "operators": [entry.to_dict() for entry in self.entries]}

    def __repr__(self) -> str:
        width = max(len(e.operator) for e in self.entries)
        shown = ((e, e.summary if e.origin == "ratedist" else f"{e.summary} ({e.origin})") for e in self.entries)
        return "\n".join(f"{e.operator:{width}}  {e.claim:24}  {words}" for e, words in shown)

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:left'>{html.escape(str(v))}</td>" for v in e.to_dict().values())
            + "</tr>"
            for e in self.entries
        )
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in self.entries[0].to_dict())
        return f"<table><tr>{head}</tr>{rows}</table>"


def operators(*, d: Any = 10**6) -> Catalogue:
    """The catalogue: each compressor's parameters, claim, message length and limit at dimension d.

    Raises ValueError for a bad d.

    >>> import ratedist as rd
    >>> {entry.operator: entry.claim for entry in rd.operators().entries}["tcdq:omega=1.0"]
    'unbiased, omega = 1'
    """
    from operators import all_operators, outside

    dimension = _dimension(d)
    catalogued = [_entry(cls.examples()[0], dimension) for cls in all_operators().values()]
    offered = outside.announced(outside.OPERATORS).values()
    return Catalogue(dimension, (*catalogued, *(_entry_from_outside(offer, dimension) for offer in offered)))


def _entry_from_outside(offer: Announced, d: int) -> Entry:
    """What an installed package announces; if it cannot be had, the entry says why."""
    try:
        operator = operator_of(offer.name)
    except ValueError as failure:
        return Entry(offer.name, "", f"none: {failure}", "none", None, None, None, "", "", offer.origin)
    return replace(_entry(type(operator).examples()[0], d), origin=offer.origin)


def _dimension(d: Any) -> int:
    dimension = whole("d", d)
    if dimension > MOST_COORDINATES:
        raise refusal("d", f"d <= {MOST_COORDINATES} for an operator", d)
    return dimension


def _entry(operator: Operator, d: int) -> Entry:
    from dataclasses import fields

    from operators import Size, specification

    try:
        claim, size = operator.claim(d), operator.bits(d)
    except ValueError as failure:
        claim, size = NoClaim(str(failure)), Size()
    stated = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    parameters = ", ".join(f"{f.name}={getattr(operator, f.name)}" for f in fields(operator))  # type: ignore[arg-type]
    summary = (type(operator).__doc__ or "").partition("\n")[0]
    return Entry(
        operator=specification(operator),
        fields=parameters,
        claim=claim_text(claim),
        kind="none" if isinstance(claim, NoClaim) else "unbiased" if isinstance(claim, Unbiased) else "contractive",
        constant=None if isinstance(claim, NoClaim) else claim.omega if isinstance(claim, Unbiased) else claim.alpha,
        bits=stated,
        limit=class_limit(claim, d),
        randomness=operator.randomness,
        summary=summary,
    )


def claim_text(claim: Any) -> str:
    """A claim in words."""
    if isinstance(claim, NoClaim):
        return f"none: {claim.reason}"
    if isinstance(claim, Unbiased):
        return f"unbiased, omega {'=' if claim.tight else '<='} {claim.omega:.6g}"
    return f"{'surely ' if type(claim).__name__.startswith('Strict') else ''}contractive, alpha <= {claim.alpha:.6g}"


def class_limit(claim: Any, d: int) -> float | None:
    """Bits that the longest message with this claim needs; None without a claim, infinite without error."""
    if isinstance(claim, NoClaim):
        return None
    level = claim.omega if isinstance(claim, Unbiased) else claim.alpha
    return math.inf if level == 0 else d * limit_rate(level, unbiased=isinstance(claim, Unbiased))


def limit_rate(nmse: float, *, unbiased: bool) -> float:
    """Bits a coordinate below which no operator of the class has this relative squared error in its longest message."""
    return max(0.0, (math.log1p(1 / nmse) if unbiased else -math.log(nmse)) / (2 * math.log(2)))


def check(op: Any, *, budget: str = "standard", claim: Any = None, seed: int | None = None) -> Report:
    """Judge a compressor by every law of the conformance kit.

    op : specification, Operator, object with encode and decode, or function.  claim : overrides its own.
    budget : "quick", "standard" or "deep".  seed : replays a report.  Returns a Report with ``ok``.
    Raises ValueError for an unknown specification or budget.

    >>> import ratedist as rd
    >>> rd.check("scaled_sign", budget="quick", seed=1).ok
    True
    """
    from operators.laws import Budget
    from operators.laws import check as judge

    budgets = {"quick": Budget.quick, "standard": Budget, "deep": Budget.deep}
    if budget not in budgets:
        raise ValueError(f"budget must be one of {', '.join(budgets)}; got {budget!r}: choose one of them")
    try:
        return judge(operator_of(op) if isinstance(op, str) else op, claim=claim, budget=budgets[budget](), seed=seed)
    except TypeError as failure:
        raise ValueError(f"{failure}: give an instance with encode and decode, or a function") from None
