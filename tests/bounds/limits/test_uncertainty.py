"""The uncertainty principle and the Gaussian limit: what meets them, and the direction-only trap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import limits

OMEGA = st.floats(1e-6, 1e6)
DIMENSION = st.integers(1, 10**9)


@given(OMEGA, DIMENSION)
def test_unbiased_limit_is_the_contractive_one_at_the_scaled_constant(omega, d):
    contractive = limits.contractive_bits(alpha=omega / (1 + omega), d=d)
    assert limits.unbiased_bits(omega=omega, d=d) == pytest.approx(contractive, rel=1e-9)
    assert limits.gaussian_unbiased_bits(omega=omega, d=d) == limits.unbiased_bits(omega=omega, d=d)


@given(st.floats(1e-300, 1e300), DIMENSION)
def test_unbiased_limit_keeps_its_digits_for_every_omega(omega, d):
    interval = limits.unbiased_bits.enclose(omega=omega, d=d)
    assert limits.unbiased_bits(omega=omega, d=d) == pytest.approx(interval.midpoint, rel=1e-15)


@pytest.mark.parametrize(
    ("bits", "alpha"),
    [
        (math.log2(math.comb(1000, 10)) + 320, 0.99),  # top-k
        (31 + 1000, 1 - 1 / 1000),  # scaled sign
        (31 + 32 * 1000, 0.0001),
    ],
)
def test_known_contractions_obey_the_principle(bits, alpha):
    assert bits >= limits.contractive_bits(alpha=alpha, d=1000)


@pytest.mark.parametrize(
    ("bits", "omega"), [(320, 99.0), (9 * 1000, 1 / 8), (31 + 1000 * math.log2(3), math.sqrt(1000))]
)
def test_known_unbiased_operators_obey_the_principle(bits, omega):
    assert bits >= limits.unbiased_bits(omega=omega, d=1000)


@pytest.mark.parametrize(("points", "product"), [(10, 0.955), (100, 0.0987)])
def test_bits_of_the_direction_alone_would_violate_it(points, product):
    # equally spaced points on the circle: the norm is not counted, and alpha 4^(b/d) falls below 1
    alpha = math.sin(math.pi / points) ** 2
    direction_bits = math.log2(points)
    assert alpha * 4 ** (direction_bits / 2) == pytest.approx(product, rel=1e-3)
    assert direction_bits < limits.contractive_bits(alpha=alpha, d=2)
    assert direction_bits >= limits.worst_case_bits(alpha=alpha, d=2) - 1e-12  # the right limit for directions


@given(st.floats(1e-6, 1 - 1e-9), st.integers(2, 10**9))
def test_directions_need_less_than_vectors(alpha, d):
    direction, vector = limits.sphere_bits(alpha=alpha, d=d), limits.gaussian_bits(alpha=alpha, d=d)
    assert (d - 1) / d * vector * (1 - 1e-12) <= direction <= vector * (1 + 1e-12)


def test_gaussian_limit_is_attained_by_the_backward_channel():
    # Y = (1 - a) X + noise: error a and information log2(1/a)/2, by the formula for Gaussian channels
    for a in (0.01, 0.3, 0.9):
        noise = a * (1 - a)
        error = a * a + noise
        information = 0.5 * math.log2(((1 - a) ** 2 + noise) / noise)
        assert error == pytest.approx(a, rel=1e-12)
        assert information == pytest.approx(limits.gaussian_rate(nmse=a), rel=1e-12)


@pytest.mark.parametrize(
    ("d", "low", "high"),
    [
        (10, 4.80, 7.26),
        (100, 49.79, 53.71),
        (10**3, 499.79, 505.34),
        (10**4, 4999.79, 5007.00),
        (10**6, 499999.79, 500010.32),
    ],
)
def test_unbiased_bracket_at_omega_one(d, low, high):
    bracket = limits.unbiased_bracket(1, d)
    assert abs(bracket.lo - low) <= 0.005
    assert abs(bracket.hi - high) <= 0.0051


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.integers(2, 10**6))
def test_unbiased_bracket_is_ordered(omega, d):
    bracket = limits.unbiased_bracket(omega, d)
    assert bracket.lo <= bracket.hi
    alpha = omega / (1 + omega)
    asymptotic = 0.5 * math.log2(2 * math.pi * d * (1 - alpha) / (2 - alpha))
    if d * (1 - alpha) > 1000 and d * alpha > 1000:
        assert bracket.hi - bracket.lo == pytest.approx(asymptotic + 0.033, abs=0.02)


def test_high_distortion_needs_one_bit_in_fourteen_tenths_of_omega():
    assert limits.sphere_unbiased_bits(omega=1e4, d=10**6) == pytest.approx(0.7213 * 1e6 / 1e4, rel=1e-3)


def test_worst_case_exceeds_the_average_by_half_a_logarithm():
    for d, gap in ((10, 2.41), (10**3, 5.77), (10**6, 10.75)):
        difference = limits.average_strict_bits(alpha=0.1, d=d) - limits.sphere_bits(alpha=0.1, d=d)
        assert abs(difference - gap) <= 0.005


def test_one_run_and_one_message_have_the_same_law():
    assert limits.total_bits(d=100, gap=4, epsilon=1) == limits.contractive_bits(alpha=0.25, d=100)


def test_total_bits_are_met_by_a_grid_of_the_minimiser():
    # one dimension: |x*| <= R on 2^b equal cells of half-width R/2^b reaches epsilon = gap/4^b exactly
    for b in range(1, 20):
        assert limits.total_bits(d=1, gap=1, epsilon=0.25**b) == pytest.approx(b, rel=1e-12)


@given(st.floats(0.01, 30), st.integers(1, 1000), st.integers(1, 1000))
def test_mean_estimation_decreases_in_bits_to_the_unquantised_error(rate, d, m):
    values = limits.mean_estimation(bits=np.array([1, 2, 50]) * rate * d, d=d, m=m, sigma2=2.0)
    assert values[0] >= values[1] >= values[2] >= 2.0 * d / m * (1 - 1e-12)
    if rate > 1:
        assert values[2] == pytest.approx(2.0 * d / m, rel=1e-9)


@pytest.mark.parametrize(("rate", "constant"), [(0.1, 7.725), (1, 1.3333), (2, 1.0667), (4, 1.0039)])
def test_mean_estimation_constants(rate, constant):
    value = limits.mean_estimation(bits=rate * 100, d=100, m=100, sigma2=1)
    assert abs(value - constant) <= 0.6e-4 * 10


def test_one_bit_sign_estimate_obeys_the_mean_estimation_limit():
    # Fisher information of the sign of one Gaussian sample at theta = 0 is 2/pi, the limit allows 3/4
    assert math.pi / 2 >= limits.mean_estimation(bits=1, d=1, m=1, sigma2=1) == pytest.approx(4 / 3)


def test_empirical_mean_estimation_inverts_the_sphere_rate():
    assert limits.mean_estimation_bits(d=50, m=4, mse=0.05) == pytest.approx(
        limits.sphere_bits(alpha=0.2, d=50), rel=1e-14
    )


@pytest.mark.parametrize("omega", [1e-15, 2e-9, 1e-6])
def test_unbiased_bracket_keeps_its_width_for_small_omega(omega):
    """log2(2 pi d (1 - alpha)/(2 - alpha))/2 + .033 + O(1/d) with alpha = omega/(1 + omega)."""
    bracket = limits.unbiased_bracket(omega, 1000)
    assert bracket.width == pytest.approx(np.log2(1000 * np.pi) / 2 + 0.033, abs=0.005)
