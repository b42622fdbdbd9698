"""Inverses: any of dimension, bits and distortion from the other two, on the feasible side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from . import symbols
from .bound import AssumptionViolated, Bound
from .enclosure import exact

STEPS = 200  # of bisection; a float interval is exhausted before


def inverse(bound: Bound, unknown: str, value: float, **at: Any) -> float | int:
    """Return the edge of the set where the bound's value is at most ``value``, as a function of one parameter.

    Parameters
    ----------
    bound : Bound
        Monotone in ``unknown`` at the given other parameters.  With a limit on bits (side LOWER) and unknown="alpha"
        this is the least distortion that ``value`` bits do not exclude; with unknown="d" the largest dimension.  With
        what a construction sends (side UPPER) it is what that construction reaches.
    unknown : str
        Name of the symbol that is sought.
    value : float
        What the bound is to be.
    **at
        Values of the symbols, by name.

    Raises
    ------
    ValueError
        If the bound is at most ``value`` everywhere or nowhere.
    TypeError
        For unknown names.

    Notes
    -----
    An integer parameter gives an int inside the set, any other the last float found inside.
    """
    if unknown not in {symbol.name for symbol in bound.parameters}:
        raise TypeError(f"{bound.name} takes {', '.join(s.name for s in bound.parameters)}; got unknown = {unknown!r}")
    if symbols.TABLE[unknown].domain.integer:
        return _integer_edge(bound, unknown, value, at)
    low, high = _ends(bound, unknown, at)
    inside_low, inside_high = (bound(**at, **{unknown: end}) <= value for end in (low, high))
    if inside_low == inside_high:
        ends = [float(bound(**at, **{unknown: end})) for end in (low, high)]
        what = f"{bound.name} is {'at most' if inside_low else 'at least'}"
        edge = max(ends) if inside_low else min(ends)
        raise ValueError(
            f"{what} {edge:.6g} at every {unknown} from {low:.6g} to {high:.6g}; got {value}: "
            f"{'any of them will do' if inside_low else f'give {edge:.6g} or more'}"
        )
    good, bad = (low, high) if inside_low else (high, low)
    for _ in range(STEPS):
        middle = _between(good, bad)
        if middle in (good, bad):
            break
        if bound(**at, **{unknown: middle}) <= value:
            good = middle
        else:
            bad = middle
    return good


def certified_inverse(bound: Bound, unknown: str, value: Any, **at: Any) -> tuple[Fraction, Fraction]:
    """Return two exact points next to each other, the first certainly inside the set of ``inverse``, the second
    outside.

    Inputs are exact as in ``Bound.enclose``.  For an integer parameter they differ by 1, else by a few parts in 10^15.

    Parameters
    ----------
    bound : Bound
        A bound that is monotone in the unknown.
    unknown : str
        Name of the symbol that is sought.
    value
        What the bound is to be.
    **at
        Values of the symbols, by name.

    Raises
    ------
    ArithmeticError
        If the enclosures cannot separate the two sides, and what ``inverse`` raises.
    """
    plain = {name: float(exact(number)) for name, number in at.items()}
    start, threshold = inverse(bound, unknown, float(exact(value)), **plain), exact(value)
    integer = symbols.TABLE[unknown].domain.integer
    for widening in range(6):
        step = Fraction(4**widening) if integer else Fraction(start) * Fraction(4**widening, 2**52)
        for sign in (1, -1):
            inside, outside = Fraction(start) - sign * step * (not integer), Fraction(start) + sign * step
            try:
                below = Fraction(bound.enclose(**at, **{unknown: inside}).hi) <= threshold
                above = Fraction(bound.enclose(**at, **{unknown: outside}).lo) > threshold
            except AssumptionViolated:
                continue
            if below and above:
                return inside, outside
    raise ArithmeticError(f"{bound.name} cannot be separated from {value} near {unknown} = {start}")


def _ends(bound: Bound, unknown: str, at: Mapping[str, Any]) -> tuple[float, float]:
    """Return the widest floats of the domain at which the assumptions hold."""
    domain = symbols.TABLE[unknown].domain
    top = math.nextafter(domain.upper, 0) if math.isfinite(domain.upper) else 1e300
    bottom = max(domain.lower, 1e-300) if domain.lower >= 0 else -1e300
    holds = lambda v: bool(bound.holds_at(**at, **{unknown: v}))  # noqa: E731
    inside = next((v for v in _probes(bottom, top) if holds(v)), None)
    if inside is None:
        raise ValueError(f"no {unknown} satisfies the assumptions of {bound.name} at {dict(at)}")
    return _last(holds, inside, bottom), _last(holds, inside, top)


def _probes(bottom: float, top: float) -> list[float]:
    return [bottom, top, *(v for k in range(-40, 41) if bottom < (v := 2.0**k * 0.7) < top), 1 - 2.0**-20]


def _last(holds: Any, inside: float, end: float) -> float:
    if holds(end):
        return end
    for _ in range(STEPS):
        middle = _between(inside, end)
        if middle in (inside, end):
            break
        inside, end = (middle, end) if holds(middle) else (inside, middle)
    return inside


def _between(a: float, b: float) -> float:
    """Return the geometric middle of positive numbers, measured from the nearer of 0 and 1; else the arithmetic one."""
    if min(a, b) > 0.5 and max(a, b) < 1:
        return 1 - math.sqrt((1 - a) * (1 - b))
    if min(a, b) > 0:
        root = math.sqrt(a) * math.sqrt(b)
        return root if abs(math.log(a / b)) > 1e-8 else a + (b - a) / 2
    return a + (b - a) / 2


def _integer_edge(bound: Bound, unknown: str, value: float, at: Mapping[str, Any]) -> int:
    """Return doubling, then bisection over integers; the set is taken to begin at the least allowed integer."""
    first = next((n for n in range(1, 65) if bound.holds_at(**at, **{unknown: n})), None)
    if first is None:
        raise ValueError(f"no {unknown} up to 64 satisfies the assumptions of {bound.name} at {dict(at)}")
    if bound(**at, **{unknown: first}) > value:
        raise ValueError(f"{bound.name} exceeds {value} already at {unknown} = {first}")
    good, bad = first, 2 * first
    while bad < 2**62 and bound(**at, **{unknown: bad}) <= value:
        good, bad = bad, 2 * bad
    if bad >= 2**62:
        raise ValueError(f"{bound.name} is at most {value} for every {unknown} up to 2^62")
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if bound(**at, **{unknown: middle}) <= value else (good, middle)
    return good
