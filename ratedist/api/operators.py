"""The compressors: what they claim, how far a measured one is from its limit, and whether it keeps its word."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bounds import Interval
from bounds.claims import NoClaim, Unbiased

from ..numbers import refusal, whole
from ..records import Quantity, Statement, plain

if TYPE_CHECKING:
    from operators import Operator
    from operators.laws import Report

DRAWS = 3
MOST_DRAWS = 10_000
MOST_COORDINATES = 10**9


def operator_of(given: str | Operator) -> Operator:
    """An operator from its specification, or itself.  Raises ValueError for an unknown name, field or value.

    >>> operator_of("qsgd:4")
    QSGD(levels=4, norm='l2', bucket=None, code='sparse')
    """
    from operators import Operator, parse

    if isinstance(given, Operator):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f'an operator must be a specification such as "qsgd:4" or an Operator; got {given!r}: name one'
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
    bits : of one message, at most on average; None if unknown.  limit : bits that its class needs at its constant.
    randomness : "none", "private" or "shared".  summary : first line of its documentation.
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

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Catalogue:
    """Every compressor, by name, at dimension d."""

    d: int
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        """The entries as plain values."""
        return {"d": self.d, "operators": [entry.to_dict() for entry in self.entries]}

    def __repr__(self) -> str:
        width = max(len(e.operator) for e in self.entries)
        return "\n".join(f"{e.operator:{width}}  {e.claim:24}  {e.summary}" for e in self.entries)

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
    from operators import all_operators

    dimension = _dimension(d)
    return Catalogue(dimension, tuple(_entry(cls.examples()[0], dimension) for cls in all_operators().values()))


def _dimension(d: Any) -> int:
    dimension = whole("d", d)
    if dimension > MOST_COORDINATES:
        raise refusal("d", f"d <= {MOST_COORDINATES} for an operator", d)
    return dimension


def _entry(operator: Operator, d: int) -> Entry:
    from dataclasses import fields

    from operators import specification

    claim, size = operator.claim(d), operator.bits(d)
    known = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    parameters = ", ".join(f"{f.name}={getattr(operator, f.name)}" for f in fields(operator))  # type: ignore[arg-type]
    summary = (type(operator).__doc__ or "").partition("\n")[0]
    return Entry(
        operator=specification(operator),
        fields=parameters,
        claim=claim_text(claim),
        kind="none" if isinstance(claim, NoClaim) else "unbiased" if isinstance(claim, Unbiased) else "contractive",
        constant=None if isinstance(claim, NoClaim) else claim.omega if isinstance(claim, Unbiased) else claim.alpha,
        bits=known,
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
    """Bits that any operator with this claim needs; None without a claim, infinite without error."""
    if isinstance(claim, NoClaim):
        return None
    level = claim.omega if isinstance(claim, Unbiased) else claim.alpha
    return math.inf if level == 0 else d * limit_rate(level, unbiased=isinstance(claim, Unbiased))


def limit_rate(nmse: float, *, unbiased: bool) -> float:
    """Bits a coordinate below which no operator of the class has this relative squared error."""
    return max(0.0, (math.log1p(1 / nmse) if unbiased else -math.log(nmse)) / (2 * math.log(2)))


@dataclass(frozen=True)
class Measured:
    """One operator on one vector: means over the draws.

    bits : a coordinate, everything counted.  nmse : |C(x) - x|^2/|x|^2.  gap : bits above the limit of its class at
    that nmse, with the least and greatest draw; None without error.
    """

    operator: str
    claim: str
    bits: float
    nmse: float
    limit: float | None
    gap: float | None
    gap_range: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


def measure(operator: str | Operator, x: Any, *, draws: int = DRAWS, seed: int = 0) -> Measured:
    """Send a vector a few times, count every bit, and compare with the limit of the operator's class.

    x : float array or tensor, not all zero.  An operator without a claim counts as contractive.
    Raises ValueError for an unsuited vector or operator.
    """
    from operators import Key, specification

    if not isinstance(draws, int) or not 1 <= draws <= MOST_DRAWS:
        raise refusal("draws", f"1 <= draws <= {MOST_DRAWS}, an integer", draws)
    chosen, vector = operator_of(operator), finite_vector(x)
    claim = chosen.claim(vector.size)
    unbiased = isinstance(claim, Unbiased)
    wide = vector.astype(np.float64)
    energy = float(wide @ wide)
    bits, nmse = [], []
    for draw in range(draws):
        key = Key(seed, step=draw)
        message = chosen.encode(vector, key=key)
        error = chosen.decode(message, d=vector.size, key=key).numpy().astype(np.float64) - wide
        bits.append(message.bits / vector.size)
        nmse.append(float(error @ error) / energy)
    rate, distortion = float(np.mean(bits)), float(np.mean(nmse))
    name = specification(chosen)
    if distortion == 0:
        return Measured(name, claim_text(claim), rate, 0.0, None, None, None)
    gaps = [b - limit_rate(e, unbiased=unbiased) for b, e in zip(bits, nmse, strict=True) if e > 0]
    limit = limit_rate(distortion, unbiased=unbiased)
    return Measured(name, claim_text(claim), rate, distortion, limit, rate - limit, (min(gaps), max(gaps)))


def finite_vector(x: Any) -> np.ndarray:
    """A vector as float32.  Raises ValueError unless it is finite, not empty and not all zero."""
    from operators.operator import canonical

    try:
        vector = canonical(np.asarray(x, float) if isinstance(x, list | tuple) else x)
    except (TypeError, ValueError) as failure:
        raise ValueError(f"{failure}: give a finite float array or tensor, such as a flattened gradient") from None
    if not vector.any():
        raise ValueError(
            "x must have an entry that is not 0; got zeros only: no error relative to it exists, give data"
        )
    return vector


def gap(op: str | Operator, x: Any, *, draws: int = DRAWS, seed: int = 0) -> Quantity:
    """Bits a coordinate that an operator spends on x above the limit of its class at the error it makes there.

    op : specification or Operator.  x : float array or tensor.  draws, seed : of its randomness; lo and hi are the
    least and greatest draw.  The limit is the worst case of the class: a vector with structure may cost less than it.
    Raises ValueError for an unsuited vector or operator, or if the operator makes no error.

    >>> import numpy as np, ratedist as rd
    >>> x = np.random.default_rng(0).standard_normal(100_000)
    >>> 0.05 < rd.gap("tcdq:omega=1", x) < rd.gap("qsgd:4", x) < 0.2
    True
    """
    found = measure(op, x, draws=draws, seed=seed)
    if found.gap is None or found.gap_range is None:
        raise ValueError(
            f"{found.operator} makes no error on x, so it has no gap: compare its {found.bits:g} bits a coordinate"
        )
    unbiased = found.claim.startswith("unbiased")
    statement = Statement(
        quantity=f"bits a coordinate of {found.operator} above the limit of its class at nmse {found.nmse:.4g}",
        unit="bit",
        side="estimate",
        theorem="unbiased_bits" if unbiased else "contractive_bits",
        reference="safaryan2020, uncertainty principle, arXiv:2002.08958",
        status="measured",
        assumptions=(f"mean of {draws} messages of this x", "the limit is the worst case of the class"),
        advice=_gap_advice(found),
        formula=r"\frac bd - \frac12\log_2(1 + 1/\mathrm{NMSE})"
        if unbiased
        else r"\frac bd + \frac12\log_2\mathrm{NMSE}",
        at={"operator": found.operator, "bits": found.bits, "nmse": found.nmse},
    )
    return Quantity(found.gap, statement=statement, interval=Interval(*found.gap_range), certified=False)


def _gap_advice(found: Measured) -> str:
    if found.gap is not None and found.gap < 0:
        return "Below the worst case of the class: x has structure that this operator uses"
    better = "" if found.operator.startswith("tcdq") else "; tcdq sends about 0.1 bits more than the limit"
    return f"It sends {found.bits:.4g} bits a coordinate where {found.limit or 0:.4g} are the limit{better}"


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
