"""Certified evaluation: contains the truth, is two floats wide, refuses what it cannot bound."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from bounds.enclosure import NotCertifiable, enclose, exact, holds_exactly

x, y = sp.symbols("x y", positive=True)
EXPRESSIONS = [
    x / 3 + sp.Rational(1, 7),
    sp.log(1 + 1 / x, 2) * y / 2,
    sp.sqrt(x) - sp.sqrt(y) + x ** sp.Rational(1, 3),
    sp.exp(-x) * sp.erfc(y),
    sp.Max(x, y) - sp.Min(x, y) + sp.pi,
    sp.loggamma(x + 1) - sp.digamma(y) + sp.E,
    sp.asin(x / (x + y)) + sp.acos(x / (x + y)) + sp.cos(x) * sp.sin(y),
    x**-2 + sp.tanh(y) + sp.EulerGamma,
]
POSITIVE_RATIONALS = st.fractions(min_value=Fraction(1, 1000), max_value=50, max_denominator=10**6)


def sixty_digits(expression, at):
    with mpmath.workdps(60):
        numbers = [mpmath.mpf(at[s].numerator) / at[s].denominator for s in (x, y)]
        return sp.lambdify((x, y), expression, "mpmath")(*numbers)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
@given(a=POSITIVE_RATIONALS, b=POSITIVE_RATIONALS)
def test_enclosure_contains_the_sixty_digit_value(expression, a, b):
    at = {x: a, y: b}
    interval, value = enclose(expression, at), sixty_digits(expression, at)
    with mpmath.workdps(60):
        slack = mpmath.mpf(10) ** -55 * (1 + abs(value))
        assert interval.lo - slack <= value <= interval.hi + slack


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_enclosure_is_a_few_floats_wide(expression):
    interval = enclose(expression, {x: Fraction(7, 3), y: Fraction(11, 10)})
    assert interval.hi <= np.nextafter(np.nextafter(np.nextafter(interval.lo, np.inf), np.inf), np.inf)


def test_a_rational_value_is_exact():
    interval = enclose(x / 4 + y, {x: Fraction(1), y: Fraction(1, 2)})
    assert interval.lo == interval.hi == 0.75


def test_precision_grows_until_cancellation_is_resolved():
    tiny = Fraction(1, 10**60)
    interval = enclose(sp.log(1 + x) - x + y, {x: tiny, y: Fraction(0)})
    assert interval.hi < 0
    assert interval.relative_width < 1e-15
    assert interval.midpoint == pytest.approx(-0.5e-120, rel=1e-12)


def test_an_inexact_constant_is_refused():
    with pytest.raises(NotCertifiable, match="Rational"):
        enclose(sp.Float("0.1") * sp.log(x), {x: Fraction(2)})


def test_an_unknown_function_is_refused():
    with pytest.raises(NotCertifiable, match="zeta"):
        enclose(sp.zeta(x), {x: Fraction(2)})


def test_a_pole_is_refused():
    with pytest.raises(NotCertifiable, match="finite"):
        enclose(sp.log(x - 1), {x: Fraction(1)})


def test_piecewise_takes_the_branch_that_holds_exactly():
    third = Fraction(1, 3)
    step = sp.Piecewise((sp.sqrt(x), x <= sp.Rational(1, 3)), (-sp.sqrt(x), True))
    assert enclose(step, {x: third}).lo > 0
    assert enclose(step, {x: third + Fraction(1, 10**50)}).hi < 0


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (sp.Le(x, 3, evaluate=False), True),
        (sp.Lt(x, 3, evaluate=False), False),
        (sp.Lt(sp.sqrt(x), sp.Rational(7, 4)), True),
        (sp.And(x > 1, x < 2), False),
        (sp.Or(x > 1, x < 2), True),
        (sp.true, True),
    ],
)
def test_relations_are_decided_exactly(relation, expected):
    assert holds_exactly(relation, {x: Fraction(3)}) is expected


def test_an_undecidable_relation_is_reported():
    with pytest.raises(NotCertifiable, match="cannot decide"):
        holds_exactly(sp.Le(sp.sin(x) ** 2 + sp.cos(x) ** 2, 1), {x: Fraction(3)})


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(0.1)),
        (3, Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("1e-40"), Fraction(1, 10**40)),
        (np.float64(0.5), Fraction(1, 2)),
        (np.int64(7), Fraction(7)),
        (sp.Rational(2, 7), Fraction(2, 7)),
    ],
)
def test_inputs_are_read_at_their_exact_value(given_value, expected):
    assert exact(given_value) == expected


@pytest.mark.parametrize("bad", [math.inf, math.nan, "nan"])
def test_infinite_and_undefined_inputs_are_refused(bad):
    with pytest.raises(ValueError):  # noqa: PT011  the message of Fraction for strings is its own
        exact(bad)


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="exactly"):
        exact(object())


@pytest.mark.parametrize(
    ("constant", "digits"),
    [
        (sp.sqrt(2), "1.41421356237309504880168872420969807857"),
        (sp.pi, "3.14159265358979323846264338327950288420"),
        (sp.exp(1) / 3, "0.906093942819681745120095823882920929167"),
        (2 ** sp.Rational(1, 3), "1.25992104989487316476721060727822835057"),
    ],
)
def test_irrational_constants_without_symbols_are_enclosed(constant, digits):
    """The digits are those of tables; a float between the ends would be the enclosure compared with itself."""
    interval = enclose(constant + 0, {})
    assert Fraction(interval.lo) < Fraction(digits) < Fraction(interval.hi)
    assert interval.hi == np.nextafter(interval.lo, np.inf)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (sp.exp(-x), 0.0, 5e-324),
        (-sp.exp(-x), -5e-324, 0.0),
        (sp.exp(x), np.finfo(float).max, math.inf),
        (-sp.exp(x), -math.inf, -np.finfo(float).max),
    ],
)
def test_values_beyond_every_float_are_enclosed_without_being_written_out(expression, low, high):
    interval = enclose(expression, {x: Fraction(3 * 10**11)})
    assert (interval.lo, interval.hi) == (low, high)
