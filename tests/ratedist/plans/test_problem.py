"""What holds of a gradient at the start of training, whatever the method."""

import pytest

from ratedist.plans.problem import gradient_limit


@pytest.mark.parametrize(("G", "limit", "name"), [(1.5, 2.25, "G^2"), (3.0, 4.0, "2 L gap"), (None, 4.0, "2 L gap")])
def test_the_smaller_of_both_limits_is_named(G, limit, name):
    value, words = gradient_limit(L=2.0, gap=1.0, G=G)

    assert value == limit
    assert words.startswith(name)
