"""The one of dimension, bits and distortion that is left out, from the other two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np
import sympy as sp

from bounds import Bound, Interval, Property, Side, symbols
from bounds.enclosure import enclose as enclose_expression
from bounds.inverse import certified_inverse
from bounds.limits import contractive_bits, unbiased_bits

from ..numbers import Number, Numbers, broadcast_shape, read, refusal
from ..plans.problem import catalogue_bound, evaluate_read, readable, require_setting, statement_of
from ..records import Advised, Quantities, Quantity, Statement
from .arguments import ABSENT, Sought
from .call import Call, Command, Route
from .shared import measurement

MOST_RATE = 480  # bits per coordinate; beyond, the distortion underflows binary64


@overload
def solve(
    *,
    d: Number | None = None,
    bits: Number | None = None,
    omega: Number | None = ABSENT,
    alpha: Number | None = ABSENT,
    theorem: str | None = None,
    setting: Iterable[str] | None = None,
) -> Quantity: ...
@overload
def solve(
    *,
    d: Numbers | None = None,
    bits: Numbers | None = None,
    omega: Numbers | None = ABSENT,
    alpha: Numbers | None = ABSENT,
    theorem: str | None = None,
    setting: Iterable[str] | None = None,
) -> Quantity | Quantities: ...
def solve(
    *,
    d: Any = None,
    bits: Any = None,
    omega: Any = ABSENT,
    alpha: Any = ABSENT,
    theorem: str | None = None,
    setting: Iterable[str] | None = None,
) -> Quantity | Quantities:
    """Return the one of dimension, bits and distortion that is left out (or None), from the other two.

    Give two of d, bits and omega (unbiased; the default) or alpha (contractive).  The answer is the edge of the
    theorem: for a lower bound on bits what no operator beats, for an upper bound what its construction reaches.

    Parameters
    ----------
    d : array_like, optional
        Number of coordinates; without a value it is sought.
    bits : array_like, bits, optional
        Bits of the longest message; without a value they are sought.
    omega : array_like, optional
        Variance constant of unbiased operators, ``E|C(x) - x|^2 <= omega |x|^2``; without a value it is sought.
    alpha : array_like, optional
        Contraction constant, ``E|C(x) - x|^2 <= alpha |x|^2``; without a value it is sought.
    theorem : str or None, optional
        Another bound of the catalogue in the same letters, such as "worst_case_bits".
    setting : iterable of str or None, optional
        Names of what holds, such as ["self_delimiting"]; if given, it must imply what the theorem needs (omega itself
        says unbiased, alpha contractive).  Arrays broadcast.

    Raises
    ------
    ValueError
        For other arguments.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.solve(d=10**6, bits=2e6, omega=None)
    Quantity(0.0666666667, certified in [0.06666666666666667, 0.06666666666666668], unbiased_bits)
    """
    if omega is not ABSENT and alpha is not ABSENT and omega is not None and alpha is not None:
        raise ValueError(f"give omega or alpha, not both; got omega = {omega}, alpha = {alpha}: drop one")
    letter = "alpha" if alpha is not ABSENT and (omega is ABSENT or omega is None) else "omega"
    level = alpha if letter == "alpha" else omega
    given = {"d": d, "bits": bits, letter: None if level is ABSENT else level}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise ValueError(
            f"solve needs all but one of d, bits and {letter}; got {len(given) - len(missing)} of 3: "
            f"{'leave one out' if not missing else 'give ' + ' and '.join(missing[1:])}"
        )
    bound = _limit(theorem, letter)
    require_setting(bound, setting, Property.UNBIASED if letter == "omega" else Property.CONTRACTIVE)
    (unknown,) = missing
    given_values = {name: read(name, value) for name, value in given.items() if name != unknown}
    if unknown == "bits":
        return evaluate_read(bound, given_values)
    shape = broadcast_shape(given_values)
    if shape or any(isinstance(value, np.ndarray) for value in given_values.values()):
        return _solve_array(bound, unknown, given_values, shape)
    return _solve_one(bound, unknown, {name: str(value) for name, value in given_values.items()})


def _limit(theorem: str | None, letter: str) -> Bound:
    bound = {"omega": unbiased_bits, "alpha": contractive_bits}[letter] if theorem is None else catalogue_bound(theorem)
    takes = {symbol.name for symbol in bound.parameters}
    if takes != {"d", letter} or bound.unit != "bit":
        raise ValueError(
            f"theorem must be a limit in bits of d and {letter}; {bound.name} takes {', '.join(sorted(takes))}: "
            "choose for example worst_case_bits with alpha"
        )
    return bound


def _solve_array(bound: Bound, unknown: str, known: dict[str, Any], shape: tuple[int, ...]) -> Quantities:
    by_index = {}
    for index in np.ndindex(shape):
        point = {
            name: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index]))
            for name, v in known.items()
        }
        by_index[index] = _solve_one(bound, unknown, point)
    values = np.array([float(result) for result in by_index.values()]).reshape(shape)
    return Quantities(values, statement=_solved(bound, unknown, known), each=by_index.__getitem__)


def _solve_one(bound: Bound, unknown: str, known: dict[str, str]) -> Quantity:
    if "d" in known and not 0 < Fraction(known["bits"]) / Fraction(known["d"]) <= MOST_RATE:
        most = float(MOST_RATE * Fraction(known["d"]))
        remedy = f"give at most {most:.6g} bits for one message"
        raise refusal("bits", f"0 < bits/d <= {MOST_RATE}", known["bits"], f" with d = {known['d']}", remedy)
    if bound not in (unbiased_bits, contractive_bits):
        return _searched(bound, unknown, known)
    symbolic = {symbols.TABLE[name].symbol: Fraction(value) for name, value in known.items()}
    interval = enclose_expression(_closed_form(bound, unknown), symbolic)
    if unknown == "d":
        lo, hi = math.floor(interval.lo), math.floor(interval.hi)
        if hi < 1:
            raise ValueError(
                f"bits must reach the limit at d = 1; got bits = {known['bits']} with {_rest(known)}: give more bits"
            )
        interval = Interval(float(max(lo, 1)), float(hi))
        return Quantity(float(hi), statement=_solved(bound, unknown, known), interval=interval)
    return Quantity(interval.midpoint, statement=_solved(bound, unknown, known), interval=interval)


def _rest(known: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in known.items() if name != "bits")


def _searched(bound: Bound, unknown: str, known: dict[str, str]) -> Quantity:
    """By bisection, both sides certified."""
    rest = {name: value for name, value in known.items() if name != "bits"}
    try:
        with readable(bound):
            ends = certified_inverse(bound, unknown, known["bits"], **rest)
    except ArithmeticError as failure:
        raise ValueError(f"{failure}: change bits a little") from None
    interval = Interval.outwards(min(ends), max(ends))
    return Quantity(float(ends[0]), statement=_solved(bound, unknown, known), interval=interval)


@lru_cache(maxsize=8)
def _closed_form(bound: Bound, unknown: str) -> sp.Expr:
    """Return the bound's own formula solved for one symbol, by sympy."""
    x = sp.Symbol(unknown, positive=True)
    target = symbols.TABLE["bits"].symbol
    (solution,) = sp.solve(bound.value.rewrite(sp.log).subs(symbols.TABLE[unknown].symbol, x) - target, x)
    return sp.expand_log(solution, force=True)


def _solved(bound: Bound, unknown: str, known: Mapping[str, Any]) -> Statement:
    function = partial(solve, theorem=bound.name, **{unknown: None})
    return replace(_solved_fixed_part(bound, unknown), at=dict(known), function=function)


LEVELS = {"omega": "variance constant omega", "alpha": "contraction constant alpha"}


@lru_cache(maxsize=64)
def _solved_fixed_part(bound: Bound, unknown: str) -> Statement:
    """Return a bound in bits, read as one on its argument: fewer bits are fewer dimensions, or a larger constant."""
    stated = statement_of(bound, {})
    formula = stated.formula
    if bound in (unbiased_bits, contractive_bits):
        names = {symbols.TABLE["bits"].symbol: "b"}
        formula = f"{symbols.TABLE[unknown].latex} = {sp.latex(_closed_form(bound, unknown), symbol_names=names)}"
    advised: tuple[Advised, ...] = ()
    if bound.side is Side.LOWER:
        advised = (measurement("tcdq:omega=1"),)
        quantity = f"{LEVELS.get(unknown, 'dimension')} of any compressor of this class with so many bits"
        advice = "see how near compressors come"
    else:
        quantity = f"{LEVELS.get(unknown, 'dimension')} that this construction reaches with so many bits"
        advice = "That is one construction, others may do better: leave theorem out for the limit of its class"
    falls = {Side.LOWER: "lower", Side.UPPER: "upper", Side.TIGHT: "tight"}
    rises = {Side.LOWER: "upper", Side.UPPER: "lower", Side.TIGHT: "tight"}
    side = (rises if unknown == "d" else falls)[bound.side]
    if bound.setting.known_up_to:
        side, quantity = "estimate", f"{LEVELS.get(unknown, 'dimension')} at which the formula has so many bits"
        advice = "A formula that is no bound: judge it by theorems without such a gap"
    return replace(stated, quantity=quantity, unit="1", side=side, advice=advice, advised=advised, formula=formula)


def _run(**given: Any) -> Any:
    """Return what ``solve`` does; d and bits that are not named are sought like those without a value."""
    first = {name: None for name in ("d", "bits") if given[name] is ABSENT}
    return solve(**given | first)


SOUGHT = dict.fromkeys(("d", "bits", "omega", "alpha"), Sought())
CALL = Call(
    name="solve",
    summary="the one of d, bits and omega (or alpha) that is left out or given without a value",
    place=2,
    function=solve,
    command=Command(
        examples=("--d 1e6 --bits 2e6", "--d 1e6 --bits 2e6 --alpha", "--bits 2e6 --omega 1"), run=_run, kinds=SOUGHT
    ),
    route=Route(
        about="All but one of d, bits and omega (or alpha); what is null or left out is sought.",
        example={"d": 1000000, "bits": 2e6, "omega": None},
        kinds=SOUGHT,
        is_closed_form=lambda request: (
            request.get("theorem") is None and not any(isinstance(value, list) for value in request.values())
        ),
    ),
)
