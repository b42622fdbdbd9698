"""How far a compressor stays above the limit of its class on a vector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bounds import Interval
from bounds.limits import contractive_bits, unbiased_bits

from ..cluster.compressors import limit_rate
from ..numbers import Vector
from ..records import Quantity, Statement
from .arguments import Coordinates, Specification, Whole
from .call import Call, Route
from .measure import DRAWS, Measured, finite_vector, measure
from .shared import measurement

if TYPE_CHECKING:
    from operators.functions.own import Compressor


def gap(op: Compressor, x: Vector, *, draws: int = DRAWS, seed: int = 0) -> Quantity:
    """Return the bits per coordinate by which an operator exceeds the limit of its class at its error on x.

    Parameters
    ----------
    op : str or Operator or callable
        Compressor such as topk:0.5.  In Python also an ``Operator``, or a function of your own with its bits (``own``).
    x : float array or tensor
        The vector.
    draws : int, optional
        Number of messages; lo and hi are the least and greatest.
    seed : int, optional
        Seed of the operator's randomness.

    Raises
    ------
    ValueError
        For an unsuited vector or operator, or if the operator makes no error.

    Examples
    --------
    >>> import numpy as np, ratedist as rd
    >>> x = np.random.default_rng(0).standard_normal(100_000)
    >>> 0.05 < rd.gap("tcdq:omega=1", x) < rd.gap("qsgd:4", x) < 0.2
    True
    """
    result = measure(op, x, draws=draws, seed=seed)
    if result.gap is None and result.limit_of:
        raise ValueError(f"x has no gap, for no claim holds for it: {result.limit_of}; rescale x")
    if result.gap is None or result.gap_range is None:
        raise ValueError(
            f"{result.operator} makes no error on x, so it has no gap: compare its {result.bits:g} bits per coordinate"
        )
    unbiased = result.limit_of.startswith("unbiased")
    state = partial(_statement, finite_vector(x).copy(), result, unbiased=unbiased, draws=draws, seed=seed)
    return Quantity(result.gap, statement=state, interval=Interval(*result.gap_range), certified=False)


def _statement(x: Vector, result: Measured, *, unbiased: bool, draws: int, seed: int) -> Statement:
    """Return what the gap means, and TCDQ on the same vector beside it."""
    rival = _compared(x, result, draws=draws, seed=seed)
    theorem = unbiased_bits if unbiased else contractive_bits
    return Statement(
        quantity=f"bits per coordinate of {result.operator} above the limit: {result.limit_of}",
        unit="bit",
        side="estimate",
        theorem=theorem.name,
        reference=str(theorem.reference),
        status="measured",
        about=f"mean length of {draws} messages of this x, less the limit for the longest message of an operator",
        needs=theorem.setting.hypotheses(),
        assumptions=(f"mean of {draws} messages of this x",),
        advice=_gap_advice(result, rival),
        advised=() if rival is None else (measurement(rival.operator, draws=draws, seed=seed),),
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


def _compared(x: Vector, found: Measured, *, draws: int, seed: int) -> Measured | None:
    """Return TCDQ on the same vector at this error, where that is nearer to the limit of its class."""
    if found.operator.startswith("tcdq") or found.gap is None:
        return None
    rival = measure(f"tcdq:omega={min(max(found.limit_nmse, 2.0**-20), 2.0**20)!r}", x, draws=draws, seed=seed)
    return rival if rival.gap is not None and rival.gap < found.gap else None


def _gap_advice(found: Measured, rival: Measured | None) -> str:
    if found.gap is not None and found.gap < 0:
        return "Below the limit of the longest message: x has structure that this operator uses"
    text = f"It sends {found.bits:.4g} bits per coordinate where {found.limit or 0:.4g} are the limit"
    if rival is None:
        return text
    return f"{text}; on this x {rival.operator} sends {rival.gap:.3g} more than the limit of unbiased operators"


def _answer(op: str, x: Sequence[float], **given: int) -> Quantity:
    return gap(op, [float(value) for value in x], **given)


CALL = Call(
    name="gap",
    summary="bits of a compressor above the limit of its class",
    place=7,
    function=gap,
    route=Route(
        about="A compressor and a short vector.",
        example={"op": "topk:0.5", "x": [3.0, -4.0]},
        run=_answer,
        kinds={"op": Specification(), "x": Coordinates(), "draws": Whole(1, 10)},
    ),
)
