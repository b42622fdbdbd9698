"""What a compressor really spends on a vector, against the limit of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bounds import Interval
from bounds.claims import Unbiased

from ..numbers import refusal
from ..records import Quantity, Statement, plain
from .operators import claim_text, limit_rate, operator_of

if TYPE_CHECKING:
    from operators import Operator

DRAWS = 3
MOST_DRAWS = 10_000


@dataclass(frozen=True)
class Measured:
    """One operator on one vector: means over the draws.

    bits : a coordinate, everything counted.  nmse : |C(x) - x|^2/|x|^2.  gap : bits above the limit of its class at
    that nmse, with the least and greatest draw; None without error.
    claim : in words.  gap_range : least and greatest gap of a draw.
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
