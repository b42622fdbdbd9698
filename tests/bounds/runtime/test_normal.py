import math

import pytest

from bounds.runtime import Exponential, Pareto, approximate_expected_max, normal_max_moment


def test_maxima_of_normals_have_their_known_means():
    assert normal_max_moment(1) == pytest.approx(0, abs=1e-15)
    assert normal_max_moment(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-13)
    assert normal_max_moment(3) == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-13)
    for m, value in {4: 1.0294, 8: 1.4236, 16: 1.7660, 64: 2.3437}.items():
        assert normal_max_moment(m) == pytest.approx(value, abs=5e-5)


def test_second_moment_of_the_larger_of_two_is_one():
    assert normal_max_moment(1, 2) == pytest.approx(1, rel=1e-13)
    assert normal_max_moment(2, 2) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("tau", [4, 10])
@pytest.mark.parametrize("m", [16, 64])
def test_skewness_term_brings_the_approximation_within_its_stated_error(m, tau):
    law = Exponential(1.0)
    exact = law.expected_max(m=m, tau=tau)
    assert approximate_expected_max(law, m=m, tau=tau) == pytest.approx(exact, rel=0.011)
    without = 1 + normal_max_moment(m) / math.sqrt(tau)
    assert 0.04 < 1 - without / exact < 0.15


def test_heavy_tails_are_refused():
    with pytest.raises(ValueError, match="needs a third moment"):
        approximate_expected_max(Pareto(1.0, 2.5), m=4, tau=10)
