"""What a compressor really spends on a vector, against the limit of its class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bounds import Interval
from bounds.claims import Claim, NoClaim, Unbiased
from bounds.limits import contractive_bits, unbiased_bits

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

    bits : a coordinate, everything counted.  nmse : |C(x) - x|^2/|x|^2.  gap : bits above the limit at that error; None
    without error.  claim : in words.  gap_range : least and greatest gap of a draw.
    limit_of : the class whose limit it is, and at which error, in words.  limit_nmse : that error, the mean of
    |scale C(x) - x|^2/|x|^2.  scale : 1, or where nothing is claimed the
    factor on the decoded vector that makes the error least: a receiver may multiply at no cost in bits, and an unbiased
    operator is then held against the limit of unbiased ones.
    """

    operator: str
    claim: str
    bits: float
    nmse: float
    limit: float | None
    gap: float | None
    gap_range: tuple[float, float] | None
    limit_of: str = ""
    limit_nmse: float = 0.0
    scale: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


def measure(operator: str | Operator, x: Any, *, draws: int = DRAWS, seed: int = 0) -> Measured:
    """Send a vector a few times, count every bit, and compare with the limit of the operator's class.

    x : float array or tensor, not all zero.  An operator with a claim is held against the limit of its class, one
    without against the contractive limit at the error of the best multiple of its decoded vectors.
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
    bits, nmse, along, square = [], [], [], []
    for draw in range(draws):
        key = Key(seed, step=draw)
        message = chosen.encode(vector, key=key)
        decoded = chosen.decode(message, d=vector.size, key=key).numpy().astype(np.float64)
        error = decoded - wide
        bits.append(message.bits / vector.size)
        nmse.append(float(error @ error) / energy)
        along.append(float(decoded @ wide) / energy)
        square.append(float(decoded @ decoded) / energy)
    rate, distortion = float(np.mean(bits)), float(np.mean(nmse))
    name = specification(chosen)
    if distortion == 0:
        return Measured(name, claim_text(claim), rate, 0.0, None, None, None)
    scale = 1.0
    if isinstance(claim, NoClaim) and sum(along) > 0:
        scale = sum(along) / sum(square)
    judged = nmse if scale == 1 else [1 - 2 * scale * a + scale**2 * s for a, s in zip(along, square, strict=True)]
    gaps = [b - limit_rate(e, unbiased=unbiased) for b, e in zip(bits, judged, strict=True) if e > 0]
    limit_nmse = float(np.mean(judged))
    limit = limit_rate(limit_nmse, unbiased=unbiased)
    ends = min(gaps), max(gaps)
    words = _limit_words(claim, limit_nmse, scale)
    return Measured(name, claim_text(claim), rate, distortion, limit, rate - limit, ends, words, limit_nmse, scale)


def _limit_words(claim: Claim, at: float, scale: float) -> str:
    if isinstance(claim, NoClaim):
        return f"contractive, at nmse {at:.4g} of the decoded vector times {scale:.4g} (nothing is claimed)"
    return f"{'unbiased' if isinstance(claim, Unbiased) else 'contractive'}, at nmse {at:.4g}"


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
    least and greatest draw.  The limit is that of the class (see ``measure`` for operators without a claim).  It holds
    for the longest message and for the mean over Gaussian vectors: a vector with structure may cost less.
    Raises ValueError for an unsuited vector or operator, or if the operator makes no error.

    >>> import numpy as np, ratedist as rd
    >>> x = np.random.default_rng(0).standard_normal(100_000)
    >>> 0.05 < rd.gap("tcdq:omega=1", x) < rd.gap("qsgd:4", x) < 0.2
    True
    """
    result = measure(op, x, draws=draws, seed=seed)
    if result.gap is None or result.gap_range is None:
        raise ValueError(
            f"{result.operator} makes no error on x, so it has no gap: compare its {result.bits:g} bits a coordinate"
        )
    unbiased = result.limit_of.startswith("unbiased")
    theorem = unbiased_bits if unbiased else contractive_bits
    statement = Statement(
        quantity=f"bits a coordinate of {result.operator} above the limit: {result.limit_of}",
        unit="bit",
        side="estimate",
        theorem=theorem.name,
        reference=str(theorem.reference),
        status="measured",
        about=theorem.setting.about(),
        needs=theorem.setting.hypotheses(),
        assumptions=(f"mean of {draws} messages of this x",),
        advice=_gap_advice(result),
        formula=r"\frac bd - \frac12\log_2(1 + 1/\mathrm{NMSE})"
        if unbiased
        else r"\frac bd + \frac12\log_2\mathrm{NMSE}",
        function=partial(limit_rate, unbiased=unbiased),
        at={
            "operator": result.operator,
            "bits": result.bits,
            "nmse": result.nmse,
            "limit_nmse": result.limit_nmse,
        },
    )
    return Quantity(result.gap, statement=statement, interval=Interval(*result.gap_range), certified=False)


def _gap_advice(found: Measured) -> str:
    if found.gap is not None and found.gap < 0:
        return "Below the limit of the longest message: x has structure that this operator uses"
    better = "" if found.operator.startswith("tcdq") else "; tcdq sends about 0.1 bits more than the limit"
    return f"It sends {found.bits:.4g} bits a coordinate where {found.limit or 0:.4g} are the limit{better}"
