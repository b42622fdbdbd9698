import numpy as np
import pytest

from bounds.estimate import gap_from_losses


def test_interval_covers_the_gap_above_a_known_infimum():
    rng = np.random.default_rng(1)
    found = gap_from_losses(2.5 + rng.standard_normal(400), loss_inf=0.5, level=0.9999)
    assert 2.0 in found.interval
    assert found.interval.width < 1.0


def test_a_lower_bound_of_the_infimum_biases_the_gap_upwards():
    assert gap_from_losses([2.0, 3.0]).value == 2.5
    assert "high" in gap_from_losses([2.0, 3.0]).bias


def test_losses_below_the_infimum_are_refused():
    with pytest.raises(ValueError, match=r"below loss_inf = 3\.0 by 0\.5: lower loss_inf"):
        gap_from_losses([2.0, 3.0], loss_inf=3.0)
