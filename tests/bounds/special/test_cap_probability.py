"""The cap probability: 40-digit values, the incomplete beta function, certified enclosures, its own identities."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from bounds.enclosure import enclose
from bounds.special.cap_probability import (
    SINH_SERIES,
    CapExcess,
    CapMeanCosine,
    NegLog2Cap,
    cap_lead_and_excess,
    cap_mean_cosine,
    enclose_cap_excess,
    enclose_neg_log2_cap,
    neg_log2_cap,
    neg_log2_cap_of,
)
from bounds.symbols import alpha, d

with (Path(__file__).parent / "data" / "neg_log2_cap.csv").open() as file:
    GOLDEN = [(row["alpha"], int(row["d"]), Fraction(row["neg_log2_cap"])) for row in csv.DictReader(file)]

ALPHAS = np.concatenate([np.geomspace(1e-6, 0.5, 6), 1 - np.geomspace(0.4, 1e-9, 6)])
DIMENSIONS = np.unique(np.concatenate([[1, 2, 3, 5, 8, 13, 16, 17, 18, 20], np.round(np.geomspace(29, 1e12, 8))]))


def neg_log2_cap_60(share, dimension):
    """The incomplete beta function with 60 digits."""
    with mpmath.workdps(80):
        value = mpmath.mpf(share.numerator) / share.denominator
        half = mpmath.mpf(dimension - 1) / 2
        return -mpmath.log(mpmath.betainc(half, 0.5, 0, value, regularized=True) / 2, 2)


@pytest.mark.parametrize(("share", "dimension", "value"), GOLDEN)
def test_both_twins_agree_with_forty_digits(share, dimension, value):
    interval = enclose_neg_log2_cap(share, dimension)
    ulp = Fraction(1, 10**33)  # of the written digits
    assert Fraction(interval.lo) <= value + ulp
    assert Fraction(interval.hi) >= value - ulp
    assert abs(Fraction(neg_log2_cap(float(share), dimension)) - value) <= Fraction(1, 10**15) * value


def test_kernel_is_accurate_on_the_whole_grid():
    errors, excess_errors = [], []
    for share in ALPHAS:
        for dimension in DIMENSIONS:
            lead, excess = cap_lead_and_excess(share, dimension)
            truth = enclose_neg_log2_cap(share, int(dimension)).midpoint
            errors.append(abs(lead + excess - truth) / truth)
            excess_errors.append(abs(excess - enclose_cap_excess(share, int(dimension)).midpoint))
    assert max(errors) <= 1e-13
    assert np.median(errors) <= 1e-15
    assert max(excess_errors) <= 1e-11


def test_kernel_agrees_with_scipy_where_that_works():
    shares, dimensions = np.meshgrid(np.linspace(0.01, 0.99, 50), np.arange(2, 60))
    with np.errstate(under="ignore"):
        library = -np.log2(betainc((dimensions - 1) / 2, 0.5, shares) / 2)
    np.testing.assert_allclose(neg_log2_cap(shares, dimensions), library, rtol=3e-14)


@given(
    share=st.fractions(min_value=Fraction(1, 10**4), max_value=1 - Fraction(1, 10**6), max_denominator=10**9),
    dimension=st.integers(2, 300),
)
def test_enclosure_contains_the_sixty_digit_value(share, dimension):
    interval, truth = enclose_neg_log2_cap(share, dimension), neg_log2_cap_60(share, dimension)
    with mpmath.workdps(70):
        slack = mpmath.mpf(10) ** -55 * truth
        assert interval.lo - slack <= truth <= interval.hi + slack
    assert interval.relative_width <= 1e-15


@pytest.mark.parametrize("share", ["0.001", "0.1", "0.5", "0.9", "0.999", "0.999999999"])
@pytest.mark.parametrize("dimension", [3, 10, 10**3, 10**6, 10**9, 10**12])
def test_enclosure_is_narrow_at_any_dimension(share, dimension):
    interval = enclose_neg_log2_cap(share, dimension)
    assert interval.relative_width <= 1e-15
    at_float = enclose_neg_log2_cap(float(share), dimension).midpoint  # near 1 a float is not its decimal
    assert neg_log2_cap(float(share), dimension) == pytest.approx(at_float, rel=1e-14)


@pytest.mark.parametrize("share", [1e-12, 1e-3, 0.3, 0.5, 0.7, 1 - 1e-12])
def test_low_dimensions_have_closed_forms(share):
    assert neg_log2_cap(share, 1) == pytest.approx(1, rel=1e-15)  # one of the two signs
    assert neg_log2_cap(share, 2) == pytest.approx(
        -math.log2(math.atan2(math.sqrt(share), math.sqrt(1 - share)) / math.pi), rel=1e-11
    )
    height = share / (1 + math.sqrt(1 - share))
    assert neg_log2_cap(share, 3) == pytest.approx(-math.log2(height / 2), rel=1e-14)


def test_extreme_arguments_stay_finite():
    shares = np.array([5e-324, 1e-300, 1e-30, 0.5, 1 - 2**-53])
    dimensions = np.array([1, 2, 3, 17, 1e6, 1e12, 1e15])
    with np.errstate(all="raise", under="ignore"):
        values = neg_log2_cap(shares[:, None], dimensions)
    assert np.all(np.isfinite(values))
    assert np.all(values >= 1 - 1e-15)


def test_complement_keeps_accuracy_where_alpha_has_rounded_to_one():
    value = neg_log2_cap(1.0, 1e20, complement=1e-18)
    nearby = neg_log2_cap(1 - 1e-12, 1e14)  # depends on d (1 - alpha) alone, up to 1e-12
    assert value == pytest.approx(nearby, rel=1e-3)


@given(st.floats(1e-6, 1 - 1e-9), st.floats(1e-6, 1 - 1e-9), st.integers(1, 10**9))
def test_decreases_in_alpha(first, second, dimension):
    low, high = sorted((first, second))
    assert neg_log2_cap(low, dimension) >= neg_log2_cap(high, dimension) * (1 - 1e-14)


@given(st.floats(1e-6, 1 - 1e-9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_increases_in_dimension(share, first, second):
    low, high = sorted((first, second))
    assert neg_log2_cap(share, low) <= neg_log2_cap(share, high) * (1 + 1e-14)


def test_expansion_at_large_dimension():
    for share in (0.1, 0.5, 0.9):
        for dimension in (10**3, 10**4, 10**6):
            a = (dimension - 1) / 2
            correction = (1 / (8 * a) + share / (2 * (1 - share) * (a + 1))) / math.log(2)
            expansion = 0.5 * math.log2(4 * math.pi * a * (1 - share)) + correction
            assert abs(cap_lead_and_excess(share, dimension)[1] - expansion) <= 100 / dimension**2 / (1 - share) ** 2


def moment(power, angle, dimension):
    return mpmath.quad(lambda t: mpmath.cos(t) ** power * mpmath.sin(t) ** (dimension - 2), [0, angle])


def test_mean_cosine_is_that_of_the_cap():
    # by quadrature of cos t sin^(d-2) t over the cap
    for share, dimension in ((0.1, 2), (0.2, 5), (0.5, 10), (0.9, 30), (0.7, 3)):
        angle = mpmath.asin(mpmath.sqrt(share))
        mean = moment(1, angle, dimension) / moment(0, angle, dimension)
        assert cap_mean_cosine(share, dimension) == pytest.approx(float(mean), rel=1e-13)
        interval = enclose(CapMeanCosine(alpha, 1 - alpha, d), {alpha: Fraction(share), d: Fraction(dimension)})
        assert interval.lo - 1e-15 <= float(mean) <= interval.hi + 1e-15


def test_series_constants_are_the_taylor_coefficients():
    v = sp.symbols("v")
    series = sp.series((2 * sp.sinh(v / 2) / v) ** sp.Rational(-1, 2), v, 0, 2 * len(SINH_SERIES)).removeO()
    exact = [float(series.coeff(v, 2 * n)) for n in range(len(SINH_SERIES))]
    np.testing.assert_allclose(SINH_SERIES, exact, rtol=1e-14)


def test_terms_sit_inside_sympy_expressions():
    expression = neg_log2_cap_of(alpha, d) + CapExcess(alpha, 1 - alpha, d)
    interval = enclose(expression, {alpha: Fraction(1, 10), d: Fraction(10)})
    excess = cap_lead_and_excess(0.1, 10)[1]
    assert interval.midpoint == pytest.approx(17.83766175141111 + excess, rel=1e-15)
    assert sp.latex(NegLog2Cap(alpha, 1 - alpha, d)) == r"\left(-\log_2 P\left(\alpha, d\right)\right)"


@pytest.mark.parametrize(
    ("share", "dimension", "message"),
    [
        (0.0, 3, "0 < alpha < 1; got 0.0"),
        (1.0, 3, "0 < alpha < 1; got 1.0"),
        (math.nan, 3, "0 < alpha < 1; got nan"),
        (0.5, 0.5, "d >= 1, finite; got 0.5"),
        (0.5, math.inf, "d >= 1, finite; got inf"),
    ],
)
def test_arguments_outside_are_named(share, dimension, message):
    with pytest.raises(ValueError, match=message):
        neg_log2_cap(np.array([0.5, share]), np.array([3, dimension]))
    if math.isfinite(share) and math.isfinite(dimension):
        with pytest.raises(ValueError, match="the cap probability needs"):
            enclose_neg_log2_cap(share, dimension)
