"""Values of every bound and of both sides of its assumptions at three points, as they were when they were last checked.

``python -m tests.bounds.values`` writes the record again.  Run it after a deliberate change of a formula.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import sympy as sp

from bounds import Bound, NotCertifiable, all_bounds, symbols
from bounds.enclosure import enclose

RECORD = Path(__file__).with_suffix(".json")
POINTS = 3


def described(bound: Bound) -> list[list[str]]:
    """Return, for each point, the value of a bound and both sides of its assumptions to 12 digits."""
    relations = {each for condition in bound.assuming for each in condition.atoms(sp.core.relational.Relational)}
    sides = [side for relation in sorted(relations, key=sp.srepr) for side in relation.args]
    drawn = [point(bound, number) for number in range(POINTS)]
    return [[digits(each, at) for each in (bound.value, *sides)] for at in drawn]


def point(bound: Bound, number: int) -> dict[sp.Symbol, sp.Rational]:
    """Return numbers of moderate size, so that no term of a formula is small beside another."""
    names = {symbol.name: symbol for each in (bound.value, *bound.assuming) for symbol in each.free_symbols}
    draw = random.Random(int(hashlib.sha256(f"{bound.name} {number}".encode()).hexdigest(), 16))
    return {names[name]: _moderate(name, draw) for name in sorted(names)}


def _moderate(name: str, draw: random.Random) -> sp.Rational:
    domain = symbols.TABLE[name].domain
    low, high = float(domain.lower), float(domain.upper)
    if domain.integer:
        return sp.Integer(draw.randint(max(2, math.ceil(low)), int(min(40, high))))
    if math.isinf(low):
        low = -2.0
    return sp.Rational(draw.randint(20, 80), 100) * sp.Rational(str(min(2.0, high - low))) + sp.Rational(str(low))


def digits(expression: sp.Expr, at: dict[sp.Symbol, sp.Rational]) -> str:
    """Return a value to 12 digits, and in words that it has none at this point."""
    try:
        return (
            f"{enclose(expression, {symbol: Fraction(int(x.p), int(x.q)) for symbol, x in at.items()}).midpoint:.12g}"
        )
    except (NotCertifiable, ArithmeticError, ValueError) as refused:
        return type(refused).__name__


def main() -> None:
    """Write the record."""
    lines = (f"{json.dumps(name)}: {json.dumps(described(bound))}" for name, bound in sorted(all_bounds().items()))
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
