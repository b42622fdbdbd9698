"""Laws of all theorems: each proved one is confronted with an exact value, and enclosures contain 50 digits."""

import re
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import sympy as sp

from bounds import AssumptionViolated, Bound, Status, theorems
from bounds.special.elementary import FusedDifference, GeometricDecay, Log2OnePlus, OneMinusPowerOfTwo
from bounds.special.growth import MeanGrowth, PairGrowth, SquareGrowth
from tests.pooled import pooled

THEOREMS = {name: bound for name in theorems.__all__ if isinstance(bound := getattr(theorems, name), Bound)}
TESTS = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


@pooled("name", THEOREMS)
def test_proved_theorem_is_confronted_with_an_exact_value(name):
    if THEOREMS[name].status is Status.RECALLED:
        assert "ecalled" in THEOREMS[name].note, f"{name} is recalled: its note must say so"
    else:
        assert re.search(rf"def test_{name}_(lies_above|reach|exceeds|is_the_minimum)", TESTS), f"no test of {name}"


def scaled(at, generator):
    """The point of an example, every number multiplied by a random exact factor (counts kept)."""
    point = {}
    for name, value in at.items():
        value = Fraction(value)
        factor = 1 if value.denominator == 1 and value >= 1 else Fraction(int(generator.integers(900, 1001)), 1000)
        point[name] = value * factor
    return point


def fifty_digits(expression, point):
    """The value by mpmath at 60 digits, the special functions replaced by their definitions."""
    x, y, n = sp.Wild("x"), sp.Wild("y"), sp.Wild("n")
    plain = expression.replace(PairGrowth(y, n), 2 * (MeanGrowth(y * (2 + y), n) - MeanGrowth(y, n)) / y)
    plain = plain.replace(MeanGrowth(y, n), (((1 + y) ** n - 1) / y - n) / (n * y))
    plain = plain.replace(FusedDifference(n, x, y), n - x * y).replace(Log2OnePlus(x), sp.log(1 + x, 2))
    plain = plain.replace(GeometricDecay(x, y, n), (1 - x * y) ** n)
    plain = plain.replace(SquareGrowth(y, n), 2 * ((1 + y) ** n - 1 - n * y - n * (n - 1) / 2 * y**2) / y**3)
    plain = plain.replace(OneMinusPowerOfTwo(x), 1 - 2 ** (-x))
    symbols = sorted(plain.free_symbols, key=str)
    with mpmath.workdps(60):
        arguments = [mpmath.mpf(point[s.name].numerator) / point[s.name].denominator for s in symbols]
        return sp.lambdify(symbols, plain, [{"PowerQuotient": power_quotient}, "mpmath"])(*arguments)


def power_quotient(a, b, n):
    """sum a^i b^(n-1-i), also where a = b."""
    return mpmath.fsum(a**i * b ** (n - 1 - i) for i in range(int(n)))


@pooled("name", THEOREMS)
def test_enclosure_contains_the_fifty_digit_value(name):
    bound, generator = THEOREMS[name], np.random.default_rng(7)
    confirmed = 0
    for example in bound.examples:
        for _ in range(4):
            point = scaled(example.at, generator)
            if point.get("rho") == 0:
                point["rho"] = Fraction(1, 7)
            try:
                interval = bound.enclose(**point)
            except AssumptionViolated:
                continue
            with mpmath.workdps(60):
                value = fifty_digits(bound.value, point)
                assert interval.lo <= value <= interval.hi
                assert interval.relative_width < 1e-15
                fast = bound(**{key: float(number) for key, number in point.items()})
                assert abs(fast - value) <= 1e-11 * abs(value)
            confirmed += 1
    assert confirmed, f"no perturbed point satisfies the assumptions of {name}"


@pooled("name", THEOREMS)
def test_arguments_broadcast(name):
    bound = THEOREMS[name]
    at = {key: float(Fraction(value)) for key, value in bound.examples[0].at.items()}
    scalar = bound(**at)
    rows = bound(**{key: np.full((3, 1) if i % 2 else (1, 4), value) for i, (key, value) in enumerate(at.items())})
    assert isinstance(scalar, float)
    assert np.all(rows == scalar)
