import mpmath
import pytest

from bounds.runtime import Exponential, Gamma


@pytest.mark.parametrize("m", [4, 64])
def test_maximum_agrees_with_many_digit_integration(m):
    with mpmath.workdps(30):
        cdf = lambda t: mpmath.gammainc(2.5, 0, t, regularized=True)  # noqa: E731
        exact = mpmath.quad(lambda t: 1 - cdf(t) ** m, [0, 1, 3, 6, 12, 25, 50, 100])
    assert Gamma(2.5, 1.0).expected_max(m=m) == pytest.approx(float(exact), rel=1e-10)


def test_four_steps_of_shape_two_and_a_half_are_ten_exponential_ones():
    assert Gamma(2.5, 0.4).expected_max(m=16, tau=4) == pytest.approx(Exponential(1.0).expected_max(m=16, tau=10))
    assert Gamma(2.5, 0.4).expected_max(m=16, tau=4) == pytest.approx(1.6337, abs=5e-5)
