import math

import pytest
from scipy.special import stdtrit

from bounds.estimate import student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 51, 200, 201, 5000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_quantiles_agree_with_another_implementation(freedom, level):
    assert student_quantile(level, freedom) == pytest.approx(stdtrit(freedom, (1 + level) / 2), rel=1e-7)


def test_quantiles_by_hand():
    assert student_quantile(0.5, 1) == pytest.approx(1.0)  # Cauchy: the quartile
    assert student_quantile(0.95, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match=r"freedom >= 1; got level = 0\.9, freedom = 0"):
        student_quantile(0.9, 0)
