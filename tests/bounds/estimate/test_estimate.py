import math

import pytest

from bounds.estimate import mean_estimate


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
