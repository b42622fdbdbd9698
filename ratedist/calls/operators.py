"""The catalogue of compressors: what each claims, sends, and is compared with."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from bounds.claims import NoClaim, Unbiased

from .. import numbers
from ..cluster.compressors import alpha_text, claim_text, class_limit, operator_of
from ..numbers import refusal, whole
from ..records import Answer, Answered, Table, number_text
from .call import Call, Command, Route

if TYPE_CHECKING:
    from operators import Operator
    from operators.outside import Announced

MOST_COORDINATES = 10**12
DIMENSION = 10**6
COLUMNS = ("compressor", "class", "constant", "bits", "limit", "randomness")
NOTE = "constant: omega (unbiased) or alpha; bits, and limit of the class: per coordinate"


@dataclass(frozen=True)
class Entry:
    """One compressor of the catalogue at one dimension.

    Parameters
    ----------
    operator : str
        An example specification.
    fields : str
        Its parameters with their defaults.
    claim : str
        In words.
    kind : str
        "unbiased", "contractive" or "none", with its constant (omega or alpha).
    constant : float or None
        Omega or alpha; None without a claim.
    bits : float or None, bits
        Of one message, at most on average; None if unknown.
    limit : float or None
        Bits that the longest message of its class needs at its constant, and the mean over Gaussian vectors.
    randomness : str
        "none", "private" or "shared".
    summary : str
        First line of its documentation.
    origin : str, optional
        The package that it comes from, with its version; "ratedist" for its own.
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
        """Return the fields as plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Catalogue(Answered):
    """Every compressor, by name, at dimension d.

    Parameters
    ----------
    d : int
        Number of coordinates.
    entries : tuple of Entry
        One an operator.
    """

    d: int
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the entries as plain values."""
        return {"d": self.d, "operators": [entry.to_dict() for entry in self.entries]}

    def answer(self) -> Answer:
        """Return the compressors at one dimension."""
        rows = []
        for entry in self.entries:
            bits, limit = ("" if v is None else f"{v / self.d:.4g}" for v in (entry.bits, entry.limit))
            rows.append((entry.operator, entry.kind, _constant(entry), bits, limit, entry.randomness))
        outside = [f"{entry.operator}: {entry.origin}" for entry in self.entries if entry.origin != "ratedist"]
        return Answer(
            f"{len(rows)} compressors at d = {number_text(self.d)}.",
            {"of others": ", ".join(outside)},
            (Table(COLUMNS, tuple(rows), left=frozenset({"class", "randomness"}), note=NOTE),),
            assumed=("d = 1,000,000",) if self.d == DIMENSION else (),
            evidence={"claims": [f"{entry.operator}: {entry.claim}" for entry in self.entries]},
        )

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


def _constant(entry: Entry) -> str:
    if entry.constant is None:
        return ""
    return alpha_text(entry.constant, 4) if entry.kind == "contractive" else f"{entry.constant:.4g}"


def operators(*, d: numbers.Number = DIMENSION) -> Catalogue:
    """Return the catalogue: each compressor's parameters, claim, message length and limit at dimension d.

    Parameters
    ----------
    d : array_like, optional
        Number of coordinates.

    Raises
    ------
    ValueError
        For a bad d.

    Examples
    --------
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
    """Return what an installed package announces; if it cannot be had, the entry says why."""
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
    from operators import Size, specification

    try:
        claim, size = operator.claim(d), operator.bits(d)
    except ValueError as failure:
        claim, size = NoClaim(str(failure)), Size()
    stated = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    parameters = ", ".join(f"{f.name}={getattr(operator, f.name)}" for f in fields(operator))  # type: ignore[arg-type]
    summary = " ".join((type(operator).__doc__ or "").partition("\n\n")[0].replace("``", "").split())
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


CALL = Call(
    name="operators",
    summary="the catalogue of compressors",
    place=7,
    function=operators,
    command=Command(examples=("--d 1e6",)),
    route=Route(about="The catalogue of compressors at dimension d.", stated=False),
)
