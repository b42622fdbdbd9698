"""The random subset: right size, ascending, the same at both ends, every coordinate equally often."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq.subset import chosen, sizes


@pytest.mark.parametrize(("d", "k"), [(1, 1), (7, 3), (1000, 999), (5000, 40)])
def test_exactly_k_ascending_indices(d, k):
    index = chosen(Key(3), d, k)
    assert index.shape == (k,)
    assert (np.diff(index) > 0).all()
    assert 0 <= index[0] <= index[-1] < d


def test_each_coordinate_and_each_pair_is_in_equally_often():
    """4000 draws of 3 from 12: binomial counts, 66 pairs and 12 singles within 5.5 standard deviations."""
    draws, d, k = 4000, 12, 3
    member = np.zeros((draws, d))
    for t in range(draws):
        member[t, chosen(Key(9, step=t), d, k)] = 1
    for count, p in ((member.sum(axis=0), k / d), ((member.T @ member)[np.triu_indices(d, 1)], 6 / 132)):
        assert np.abs(count - draws * p).max() < 5.5 * np.sqrt(draws * p * (1 - p))


@pytest.mark.parametrize("d", [1, 2, 10, 1001])
@pytest.mark.parametrize("omega", [0.1, 1.5, 1.6, 9.0, 1e5])
def test_distortions_compose_to_the_declared_one(d, omega):
    k, inner = sizes(d, omega, 1.5)
    assert 1 <= k <= d
    assert inner > 0
    assert (1 + inner) * d / k - 1 == pytest.approx(omega, rel=1e-9)
