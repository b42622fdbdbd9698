import math

import pytest
from scipy.special import stdtrit

from bounds.estimate import mean_estimate, student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 51, 200, 201, 5000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_quantiles_agree_with_another_implementation(freedom, level):
    assert student_quantile(level, freedom) == pytest.approx(stdtrit(freedom, (1 + level) / 2), rel=1e-7)


def test_quantiles_by_hand():
    assert student_quantile(0.5, 1) == pytest.approx(1.0)  # Cauchy: the quartile
    assert student_quantile(0.95, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))


def test_mean_has_students_interval_and_one_value_has_none():
    found = mean_estimate([1.0, 2.0, 3.0], 0.95)
    assert found.value == 2.0
    assert found.interval.hi - 2 == pytest.approx(4.302652730 / math.sqrt(3), rel=1e-9)
    alone = mean_estimate([4.0], 0.95, lower=0.0)
    assert (alone.value, alone.interval.lo, alone.interval.hi) == (4.0, 0.0, math.inf)
    assert found.scaled(2.0).interval.hi == 2 * found.interval.hi


@pytest.mark.parametrize(
    ("values", "level", "message"),
    [
        ([], 0.95, "at least one value; got none"),
        ([1.0, math.nan], 0.95, "must be finite; got nan at index 1"),
        ([1.0], 1.0, "0 < level < 1; got level = 1"),
    ],
)
def test_bad_input_is_refused(values, level, message):
    with pytest.raises(ValueError, match=message):
        mean_estimate(values, level)
    with pytest.raises(ValueError, match="freedom >= 1"):
        student_quantile(0.9, 0)
