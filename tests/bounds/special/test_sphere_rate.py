"""The sphere rate: 40-digit values, Bessel functions, Blahut-Arimoto's bound, its own expansion, certified twins."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds.special import sphere_rate as ball_twin
from bounds.special.sphere_rate import (
    bessel_ratio,
    concentration,
    debye_log_polynomials,
    enclose_sphere_rate,
    sphere_rate,
)

# maximum over kappa by mpmath's Bessel functions with 40 digits
GOLDEN = [
    ("0.1", 2, 2.227321410114177),
    ("0.1", 3, 3.841732695410915159369385),
    ("0.1", 10, 15.42488856633673761882956),
    ("0.1", 100, 164.8996450224274),
    ("0.1", 1000, 1659.766202485347),
    ("0.1", 10000, 16608.44252202589),
    ("0.5", 2, 0.8518962175326621),
    ("0.5", 3, 1.330462332097455),
    ("0.5", 100, 49.79337961804937536319196),
    ("0.5", 1000, 499.7925703834825129832723),
    ("0.5", 10000, 4999.792490156664),
]


def sixty_digits(share, dimension):
    """The maximum over kappa of kappa t - ln K by Newton's method on mpmath's functions."""
    with mpmath.workdps(60):
        alpha, order = mpmath.mpf(share.numerator) / share.denominator, mpmath.mpf(dimension) / 2
        t = mpmath.sqrt(1 - alpha)
        kappa = mpmath.mpf(concentration(float(share), dimension))
        for _ in range(4):
            ratio = mpmath.besseli(order, kappa) / mpmath.besseli(order - 1, kappa)
            kappa += (t - ratio) / (1 - ratio**2 - (dimension - 1) * ratio / kappa)
        return (kappa * t - mpmath.log(mpmath.hyp0f1(order, kappa**2 / 4))) / mpmath.log(2)


@pytest.mark.parametrize(("share", "dimension", "value"), GOLDEN)
def test_both_twins_agree_with_the_check_values(share, dimension, value):
    assert sphere_rate(float(share), dimension) == pytest.approx(value, rel=2e-14)
    interval = enclose_sphere_rate(share, dimension)
    assert interval.lo <= value * (1 + 5e-16)
    assert interval.hi >= value * (1 - 5e-16)


@pytest.mark.parametrize("share", [1e-5, 1e-3, 0.1, 0.5, 0.500001, 0.9, 0.999, 1 - 1e-6, 1 - 1e-9])
def test_kernel_is_accurate_to_sixty_digits(share):
    for dimension in (2, 3, 7, 20, 49, 50, 51, 52, 90):
        truth = sixty_digits(Fraction(share), dimension)
        assert abs(sphere_rate(share, dimension) / truth - 1) <= 1e-13


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("dimension", [2, 66, 999, 1001, 5000, 10**12])
def test_kernel_lies_on_its_enclosure(share, dimension):
    interval = enclose_sphere_rate(share, dimension)
    assert interval.relative_width <= 1e-15
    assert abs(sphere_rate(share, dimension) / interval.midpoint - 1) <= 1e-13


@given(
    share=st.fractions(min_value=Fraction(1, 100), max_value=Fraction(999, 1000), max_denominator=10**6),
    dimension=st.integers(2, 60),
)
def test_enclosure_contains_the_sixty_digit_value(share, dimension):
    interval, truth = enclose_sphere_rate(share, dimension), sixty_digits(share, dimension)
    with mpmath.workdps(60):
        slack = truth * mpmath.mpf(10) ** -45
        assert interval.lo - slack <= truth <= interval.hi + slack


def test_integral_and_bessel_branches_of_the_ball_overlap():
    from flint import arb, ctx

    with ctx.workprec(192):
        for kappa, dimension in ((9000.0, 5000), (300.0, 4500), (1e6, 6000)):
            integrals = ball_twin._by_integrals(arb(kappa), arb(dimension))
            order = arb(dimension) / 2 - 1
            lower, upper = arb(kappa).bessel_i(order), arb(kappa).bessel_i(order + 1)
            log_mean = (arb(dimension) / 2).lgamma() + order * (2 / arb(kappa)).log() + lower.log()
            assert integrals[0].overlaps(log_mean)
            assert integrals[1].overlaps(upper / lower)


@pytest.mark.parametrize("bits", [1e3, 2e6, 1e12, 1e40])
def test_a_huge_dimension_is_enclosed_with_few_values(bits, monkeypatch):
    asked, second_order = [], ball_twin._second_order
    monkeypatch.setattr(ball_twin, "_second_order", lambda w: (asked.append(w), second_order(w))[1])
    value = enclose_sphere_rate(1 - Fraction(2 * int(bits), 10**100), 10**100)  # nearly (1 - alpha) d/(2 ln 2)
    assert value.hi - value.lo <= 1e-12 * value.hi
    assert value.lo / bits == pytest.approx(1 / math.log(2), rel=1e-6)
    assert len(asked) < 10_000


def test_three_dimensions_have_a_closed_form():
    for kappa in (1e-3, 0.1, 1.0, 10.0, 300.0):
        langevin = float(mpmath.coth(kappa) - 1 / mpmath.mpf(kappa))
        assert bessel_ratio(kappa, 3) == pytest.approx(langevin, rel=1e-14)


def test_concentration_inverts_the_ratio():
    shares, dimensions = np.meshgrid([1e-6, 0.01, 0.3, 0.7, 0.999999], [2, 3, 10, 60, 900, 1e5])
    ratio = bessel_ratio(concentration(shares, dimensions), dimensions)
    np.testing.assert_allclose(ratio, np.sqrt(1 - shares), rtol=1e-13)


def test_expansion_at_large_dimension():
    for share, coefficient in ((0.1, 0.12), (0.5, 0.10)):
        for dimension in (10**3, 10**4):
            p, mu = share / (2 - share), dimension / 2 - 1
            correction = (1 / 24 - p * p / 8 + p**3 / 12) / (mu * math.log(2))
            expansion = 0.5 * math.log2(share * (2 - share)) + correction
            excess = sphere_rate(share, dimension) - dimension / 2 * math.log2(1 / share)
            assert abs(excess - expansion) <= 1.2 * coefficient / dimension**2 + 1e-15 * dimension


@given(st.floats(1e-6, 1 - 1e-9), st.integers(2, 10**9))
def test_lies_between_its_simple_bounds(share, dimension):
    upper = dimension / 2 * -math.log2(share)
    assert (dimension - 1) / dimension * upper * (1 - 1e-12) <= sphere_rate(share, dimension) <= upper * (1 + 1e-12)


@given(st.floats(1e-6, 1 - 1e-9), st.floats(1e-6, 1 - 1e-9), st.integers(2, 10**9))
def test_decreases_in_alpha(first, second, dimension):
    low, high = sorted((first, second))
    assert sphere_rate(low, dimension) >= sphere_rate(high, dimension) * (1 - 1e-12)


def test_debye_logarithms_begin_as_published():
    (quotient, derivative), (second, _) = debye_log_polynomials(2)
    p = 0.3  # D_1 = (3p - 5p^3)/24, D_2 = (p^2 - 6p^4 + 5p^6)/16
    assert np.polyval(derivative[::-1], p) == pytest.approx((3 - 15 * p * p) / 24, rel=1e-14)
    assert np.polyval(quotient[::-1], p) == pytest.approx(((3 * p - 5 * p**3) / 24 + 2 / 24) / (p - 1), rel=1e-14)
    assert np.polyval(second[::-1], p) == pytest.approx((p**2 - 6 * p**4 + 5 * p**6) / 16 / (p - 1), rel=1e-14)


def test_extreme_arguments_stay_finite():
    shares = np.array([1e-300, 1e-70, 1e-50, 0.5, 1 - 2**-53])
    dimensions = np.array([2, 3, 50, 1e6, 1e12])
    with np.errstate(all="raise", under="ignore"):
        values = sphere_rate(shares[:, None], dimensions)
    assert np.all(np.isfinite(values) & (values > 0))
    assert values[0, 1] - values[1, 1] == pytest.approx(230 * math.log2(10), rel=1e-13)  # slope (d - 1)/2


@pytest.mark.parametrize(
    ("share", "dimension", "message"),
    [(0.0, 3, "0 < alpha < 1; got 0.0"), (1.0, 3, "0 < alpha < 1"), (0.5, 1, "d >= 2, finite; got 1.0")],
)
def test_arguments_outside_are_named(share, dimension, message):
    with pytest.raises(ValueError, match=message):
        sphere_rate(np.array([0.5, share]), np.array([3, dimension]))
    with pytest.raises(ValueError, match="the sphere rate needs"):
        enclose_sphere_rate(share, dimension)
    with pytest.raises(ValueError, match=r"needs|at least"):
        concentration(share, dimension)
    with pytest.raises(ValueError, match="kappa > 0"):
        bessel_ratio(-1.0, 3)


def test_concentration_refuses_what_it_cannot_resolve():
    with pytest.raises(ValueError, match="alpha >= 1e-60"):
        concentration(1e-70, 3)
