import mpmath
import pytest

from bounds.runtime import LogNormal


@pytest.mark.parametrize("m", [4, 64])
def test_maximum_agrees_with_many_digit_integration(m):
    with mpmath.workdps(30):
        exact = mpmath.quad(lambda t: 1 - mpmath.ncdf(2 * mpmath.log(t)) ** m, [0, 0.5, 1, 2, 4, 8, 20, 80])
    assert LogNormal(0.0, 0.5).expected_max(m=m) == pytest.approx(float(exact), rel=1e-10)


def test_law_from_moments_has_them():
    law = LogNormal.from_moments(2.0, 0.7)
    assert (law.mean_s, law.sd_s) == pytest.approx((2.0, 0.7), rel=1e-14)
