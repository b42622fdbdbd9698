import mpmath
import pytest

from bounds.runtime import Exponential, Weibull


@pytest.mark.parametrize("m", [4, 16, 64])
def test_weibull_agrees_with_the_alternating_sum_at_many_digits(m):
    with mpmath.workdps(80):
        k = mpmath.mpf(7) / 10
        terms = ((-1) ** (j + 1) * mpmath.binomial(m, j) * mpmath.mpf(j) ** (-1 / k) for j in range(1, m + 1))
        exact = float(mpmath.gamma(1 + 1 / k) * mpmath.fsum(terms))
    assert Weibull(1.0, 0.7).expected_max(m=m) == pytest.approx(exact, rel=1e-10)


def test_known_value_of_sixteen_workers():
    assert Weibull(1.0, 0.7).expected_max(m=16) == pytest.approx(5.9286, abs=5e-5)


def test_shape_one_is_exponential():
    assert Weibull(2.0, 1.0).expected_max(m=8, tau=5) == pytest.approx(Exponential(2.0).expected_max(m=8, tau=5))
