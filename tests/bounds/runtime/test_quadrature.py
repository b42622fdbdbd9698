import numpy as np
import pytest

from bounds.runtime import Exponential, Pareto, Weibull
from bounds.runtime.quadrature import expected_max_of, expected_max_scaled, order_weights


@pytest.mark.parametrize("m", [2, 64, 10**6])
def test_exponential_maxima_agree_with_the_harmonic_number(m):
    harmonic = float(np.sum(1 / np.arange(m, 0, -1.0)))
    assert expected_max_of(Exponential(1.0), m) == pytest.approx(harmonic, rel=1e-13)


def test_a_singular_density_is_integrated():
    # the smaller of two: E max = 2 mean - E min, and min of Weibull(1, k) is 2^(-1/k) times one
    law = Weibull(1.0, 0.2)
    assert expected_max_of(law, 2) == pytest.approx(law.mean_s * (2 - 2.0**-5), rel=1e-11)


def test_a_tail_without_variance_is_integrated_to_infinity():
    law = Pareto(1.0, 1.1)
    assert expected_max_of(law, 5) == pytest.approx(law.single_max(5), rel=1e-10)


def test_groups_of_unequal_scale_agree_with_inclusion_and_exclusion():
    # two copies of Exp(1) and one of Exp(3): sum of 1/rate over non-empty subsets with alternating sign
    computed = expected_max_scaled(Exponential(1.0), np.array([1.0, 3.0]), np.array([2, 1]))
    exact = (1 + 1 + 3) - (1 / 2 + 2 / (1 + 1 / 3)) + 1 / (2 + 1 / 3)
    assert computed == pytest.approx(exact, rel=1e-12)


def test_order_weights_are_those_of_drawing_with_replacement():
    assert order_weights(4, 2) == pytest.approx(np.array([1, 3, 5, 7]) / 16)
