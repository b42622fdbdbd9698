"""How few bits: the limit, its inverse in any argument, and any theorem of the catalogue, certified."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy as sp

from bounds import Bound, Interval, Property, Side, all_bounds, symbols
from bounds.enclosure import enclose as enclose_expression
from bounds.inverse import certified_inverse
from bounds.limits import contractive_bits, unbiased_bits

from ..numbers import broadcast_shape, read, refusal
from ..records import Quantities, Quantity, Statement
from .evaluation import evaluate, evaluate_read, readable, require_setting, statement_of

DENSE_BITS = 32
MOST_RATE = 480  # bits a coordinate; beyond, the distortion underflows binary64


class _Absent:
    """The default of an argument that was not named."""

    def __repr__(self) -> str:
        return "not given"


ABSENT: Any = _Absent()


def bits_lower_bound(*, d: Any, omega: Any = None, alpha: Any = None) -> Any:
    """Bits that the longest message of a compressor must have, all bits counted; no compressor of the class has fewer.

    d : coordinates.  omega : E C(x) = x and E|C(x) - x|^2 <= omega |x|^2 (unbiased), or alpha :
    E|C(x) - x|^2 <= alpha |x|^2 (contractive); exactly one.  Arrays broadcast.  Raises ValueError otherwise.
    The mean length over an isotropic Gaussian x has the same limit; messages about some x may be shorter.

    >>> import ratedist as rd
    >>> rd.bits_lower_bound(d=1e9, omega=1.0)
    Quantity(500 000 000 bits, certified in [499999999.99999994, 500000000.00000006], unbiased_bits)
    """
    if (omega is None) == (alpha is None):
        got = "neither: add one" if omega is None else f"omega = {omega}, alpha = {alpha}: drop one"
        raise ValueError(f"give exactly one of omega and alpha; got {got}")
    bound, name, value = (unbiased_bits, "omega", omega) if alpha is None else (contractive_bits, "alpha", alpha)
    given = {"d": read("d", d), name: read(name, value)}
    return evaluate_read(bound, given, _advice(name, given[name]))


def _advice(name: str, value: str | np.ndarray) -> str:
    """How many bits a coordinate that is, and who comes near."""
    if isinstance(value, np.ndarray):
        return 'Measure how far a compressor is from it: rd.gap("qsgd:4", x), or ratedist measure on a gradient'
    level = float(Fraction(value))
    rate = math.log2(1 + 1 / level) / 2 if name == "omega" else -math.log2(level) / 2
    share = f"{rate:.3g} bits a coordinate, {DENSE_BITS / rate:.3g} times fewer than binary32"
    share += "; the mean over an isotropic Gaussian x has the same limit, a single x may take fewer"
    if name == "omega":
        return f'That is {share}; rd.plan finds what pays, rd.gap("tcdq:omega={level:g}", x) shows who comes near'
    return f'That is {share}; rd.gap("sparse_dithering:nu={level:g}", x) shows who comes near'


def solve(
    *,
    d: Any = None,
    bits: Any = None,
    omega: Any = ABSENT,
    alpha: Any = ABSENT,
    theorem: str | None = None,
    setting: Iterable[str] | None = None,
) -> Any:
    """The one of dimension, bits and distortion that is left out (or None), from the other two.

    Give two of d, bits and omega (unbiased; the default) or alpha (contractive).  The answer is the edge of the
    theorem: for a lower bound on bits what no operator beats, for an upper bound what its construction reaches.
    theorem : another bound of the catalogue in the same letters, such as "worst_case_bits".  setting : names of what
    holds, such as ["self_delimiting"]; if given, it must imply what the theorem needs (omega itself says unbiased,
    alpha contractive).  Arrays broadcast.  Raises ValueError otherwise.

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
        raise refusal("bits", f"0 < bits/d <= {MOST_RATE}", known["bits"], f" with d = {known['d']}")
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
    """The bound's own formula solved for one symbol, by sympy."""
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
    """A bound in bits, read as one on its argument: fewer bits are fewer dimensions, or a larger constant."""
    stated = statement_of(bound, {})
    formula = stated.formula
    if bound in (unbiased_bits, contractive_bits):
        names = {symbols.TABLE["bits"].symbol: "b"}
        formula = f"{symbols.TABLE[unknown].latex} = {sp.latex(_closed_form(bound, unknown), symbol_names=names)}"
    if bound.side is Side.LOWER:
        quantity = f"{LEVELS.get(unknown, 'dimension')} of any operator with so many bits"
        advice = "No operator in this setting goes beyond; rd.gap(operator, x) shows how near one comes"
    else:
        quantity = f"{LEVELS.get(unknown, 'dimension')} that this construction reaches with so many bits"
        advice = "That is one construction, others may do better: leave theorem out for the limit of its class"
    falls = {Side.LOWER: "lower", Side.UPPER: "upper", Side.TIGHT: "tight"}
    rises = {Side.LOWER: "upper", Side.UPPER: "lower", Side.TIGHT: "tight"}
    side = (rises if unknown == "d" else falls)[bound.side]
    if bound.setting.known_up_to:
        side, quantity = "estimate", f"{LEVELS.get(unknown, 'dimension')} at which the formula has so many bits"
        advice = "A formula that is no bound: judge it by theorems without such a gap"
    return replace(stated, quantity=quantity, unit="1", side=side, advice=advice, formula=formula)


def catalogue_bound(name: str) -> Bound:
    """A Bound by name.  Raises ValueError for an unknown one, with the nearest names."""
    by_name = all_bounds()
    if name not in by_name:
        near = difflib.get_close_matches(str(name), by_name, 3, 0.6)
        remedy = f"try {' or '.join(near)}, or see" if near else "see"
        raise ValueError(f"theorem must be a name of the catalogue; got {name!r}: {remedy} ratedist certify --list")
    return by_name[name]


def certify(theorem: str, *, setting: Iterable[str] | None = None, **at: Any) -> Any:
    """The value of any theorem of the catalogue at one exact point, with an interval that provably contains it.

    theorem : a name in ``bounds.all_bounds()``.  at : its symbols, floats at the decimal they print; arrays broadcast.
    setting : names of what holds, such as ["strongly_convex"]; if given, it must imply what the theorem needs.
    Raises ValueError for an unknown name, missing or unknown symbols, points outside the assumptions, and a setting
    that does not imply the theorem's.

    >>> import ratedist as rd
    >>> rd.certify("worst_case_bits", d=10**12, alpha="0.3")
    Quantity(8.68482797e+11 bits, certified in [868482797103.2346, 868482797103.2347], worst_case_bits)
    """
    bound = catalogue_bound(theorem)
    expected = {symbol.name for symbol in bound.parameters}
    if expected != set(at):
        missing, unknown = sorted(expected - set(at)), sorted(set(at) - expected)
        parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unknown)}"] * bool(unknown)
        raise ValueError(f"{theorem} takes {', '.join(sorted(expected))}; {'; '.join(parts)}: give exactly these")
    require_setting(bound, setting)
    return evaluate(bound, at)
