"""Worst case: exact small codes, the covering bracket, the order of the limits and their monotonicity."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds import AssumptionViolated, limits
from bounds.special.cap_probability import neg_log2_cap

ALPHA = st.floats(1e-6, 1 - 1e-9)
DIMENSION = st.integers(2, 10**9)


def circle_points(alpha):
    """Least number of equal arcs on the circle, each within sqrt(alpha) of its centre: ceil(pi/phi)."""
    return math.ceil(math.pi / math.asin(math.sqrt(alpha)) - 1e-9)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.3, 0.5, 0.74, 0.76, 0.99])
def test_the_best_code_of_the_circle_obeys_the_bound(alpha):
    least = math.log2(circle_points(alpha))
    bound = limits.worst_case_bits(alpha=alpha, d=2)
    assert bound <= least + 1e-12
    assert least < math.log2(2**bound + 1) + 1e-12  # on the circle caps pack: rounding up is all


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_the_simplex_attains_the_count_bound(d):
    # the d + 1 vertices of a regular simplex serve every direction with cosine at least 1/d
    alpha = 1 - 0.999 / d**2
    assert limits.worst_case_bits(alpha=alpha, d=d) == pytest.approx(math.log2(d + 1), rel=1e-12)
    assert neg_log2_cap(alpha, d) <= math.log2(d + 1) + 1e-12


def test_the_count_bound_decides_at_high_distortion():
    assert neg_log2_cap(1 - 1e-8, 10**4) == pytest.approx(1.01, abs=0.01)
    assert limits.worst_case_bits(alpha=1 - 1e-8, d=10**4) == pytest.approx(13.29, abs=0.01)


@pytest.mark.parametrize(("d", "overhead"), [(10, 5.65), (100, 9.68), (10**3, 13.41), (10**4, 17.03), (10**6, 24.13)])
def test_covering_overhead_at_the_best_slack(d, overhead):
    best = limits.covering_bits.best(alpha=0.1, d=d)
    assert abs(best.value - neg_log2_cap(0.1, d) - overhead) <= 0.005


def test_any_slack_is_valid_and_none_beats_the_best():
    best = limits.covering_bits.best(alpha=0.3, d=50).value
    slack = np.linspace(1e-6, math.asin(math.sqrt(0.3)) - 1e-6, 500)
    values = limits.covering_bits(alpha=0.3, d=50, angle=slack)
    assert np.all(values >= best - 1e-9)
    assert np.all(values >= limits.worst_case_bits(alpha=0.3, d=50))
    with pytest.raises(AssumptionViolated, match="angle"):
        limits.covering_bits(alpha=0.3, d=50, angle=math.asin(math.sqrt(0.3)) + 1e-6)


@given(st.floats(1e-3, 0.999), st.integers(2, 10**6))
def test_fixed_length_bracket_is_ordered_and_logarithmic(alpha, d):
    bracket = limits.fixed_length_bracket(alpha, d)
    assert bracket.lo <= bracket.hi
    assert bracket.hi - neg_log2_cap(alpha, d) <= 9.3 + 2.5 * math.log2(d)


@given(ALPHA, ALPHA, DIMENSION)
def test_fewer_bits_are_needed_at_higher_distortion(first, second, d):
    low, high = sorted((first, second))
    for bound in (limits.worst_case_bits, limits.average_strict_bits, limits.contractive_bits, limits.sphere_bits):
        assert bound(alpha=low, d=d) >= bound(alpha=high, d=d) * (1 - 1e-12)


@given(ALPHA, DIMENSION, DIMENSION)
def test_more_bits_are_needed_in_higher_dimension(alpha, first, second):
    low, high = sorted((first, second))
    for bound in (limits.worst_case_bits, limits.average_strict_bits, limits.contractive_bits, limits.sphere_bits):
        assert bound(alpha=alpha, d=low) <= bound(alpha=alpha, d=high) * (1 + 1e-12)


@given(ALPHA, DIMENSION)
def test_weaker_promises_have_weaker_limits(alpha, d):
    sure, average, mean = (
        bound(alpha=alpha, d=d) for bound in (limits.worst_case_bits, limits.average_strict_bits, limits.sphere_bits)
    )
    slack = 1e-12 * sure
    assert mean <= average + slack
    assert average <= sure + slack


@given(st.integers(2, 500), st.integers(1, 500), ALPHA)
def test_a_sparse_vector_is_no_harder_than_a_full_one(d, kept, alpha):
    kept = min(kept, d)
    bound = limits.sparse_worst_case_bits(alpha=alpha, d=d, kept=kept)
    assert bound <= limits.worst_case_bits(alpha=alpha, d=d) * (1 + 1e-12)
    if kept == d:
        assert bound == pytest.approx(limits.worst_case_bits(alpha=alpha, d=d), rel=1e-14)


def test_certified_bracket_ends():
    low = limits.worst_case_bits.enclose(alpha="0.1", d=1000)
    high = limits.covering_bits.enclose(alpha="0.1", d=1000, angle=Fraction(1, 1000))
    assert low.hi < high.lo
    assert low.relative_width <= 1e-15
    assert high.relative_width <= 1e-15


@pytest.mark.parametrize("d", [2, 3, 10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.999])
def test_the_circulating_covering_formula_lies_inside_the_proved_bracket(alpha, d):
    assert limits.covering_midpoint_bits(alpha=alpha, d=d) in limits.fixed_length_bracket(alpha, d)


def test_the_error_of_the_circulating_covering_formula_does_not_vanish():
    """On the circle the least number of messages is pi/arcsin sqrt(alpha), rounded up: 1 bit below as alpha falls."""
    for alpha, slack in ((1e-4, 0.02), (1e-8, 2e-4), (1e-12, 2e-6)):
        best = math.log2(math.ceil(math.pi / math.asin(math.sqrt(alpha))))
        assert best - limits.covering_midpoint_bits(alpha=alpha, d=2) == pytest.approx(-1, abs=slack)
