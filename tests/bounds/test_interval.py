"""Interval: ordered ends, exact membership, outward rounding."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds import Interval

RATIONALS = st.fractions(max_denominator=10**30) | st.fractions().map(lambda x: x / Fraction(10) ** 300)


@given(RATIONALS, RATIONALS)
def test_outward_rounding_contains_the_rationals_and_is_narrow(a, b):
    lo, hi = min(a, b), max(a, b)
    interval = Interval.outwards(lo, hi)
    assert Fraction(interval.lo) <= lo
    assert Fraction(interval.hi) >= hi
    assert Fraction(math.nextafter(interval.lo, math.inf)) > lo
    assert Fraction(math.nextafter(interval.hi, -math.inf)) < hi


def test_outward_rounding_of_a_float_is_that_float():
    assert Interval.outwards(Fraction(0.1), Fraction(0.1)) == Interval(0.1, 0.1)


def test_outward_rounding_overflows_outwards():
    huge = Fraction(10) ** 400
    assert Interval.outwards(-huge, huge) == Interval(-math.inf, math.inf)
    assert Interval.outwards(huge, huge).lo == math.nextafter(math.inf, 0)


@pytest.mark.parametrize(("lo", "hi"), [(1, 0), (math.nan, 1.0), (0.0, math.nan)])
def test_disordered_or_undefined_ends_are_refused(lo, hi):
    with pytest.raises(ValueError, match="lo <= hi"):
        Interval(lo, hi)


def test_membership_is_closed_and_exact():
    interval = Interval(Fraction(1, 3), 1)
    assert Fraction(1, 3) in interval
    assert 1 in interval
    assert 1 / 3 not in interval  # the float lies below the rational
    assert math.nan not in interval


def test_relative_width_is_zero_for_a_point_and_infinite_across_zero():
    assert Interval(2.0, 2.0).relative_width == 0
    assert Interval(-1.0, 1.0).relative_width == math.inf
    assert Interval(2.0, 3.0).relative_width == 0.5


def test_midpoint_and_width():
    assert Interval(1.0, 2.0).midpoint == 1.5
    assert Interval(1.0, 2.5).width == 1.5
