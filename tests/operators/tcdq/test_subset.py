"""The random subset: the k least hashes, the same at both ends, every coordinate and pair equally often."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq.subset import STREAM, gather, scatter, sizes
from operators.tcdq.trellis import hashes


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (7, 3), (1000, 999), (1000, 1000), (5000, 40), (200_000, 70_001)])
def test_the_k_least_hashes_are_drawn_in_order(d, k):
    x = np.arange(1, d + 1, dtype=np.float32)
    expected = np.sort(np.argsort(hashes(Key(3).fold_in(STREAM), d))[:k])
    assert gather(x, k, Key(3)).tolist() == (expected + 1).tolist()


@pytest.mark.parametrize(("d", "k"), [(1, 1), (7, 3), (5000, 40), (70_000, 69_000)])
def test_scattering_puts_each_back_where_it_was(d, k):
    x = np.random.default_rng(k).standard_normal(d).astype(np.float32)
    back = scatter(gather(x, k, Key(4)), d, Key(4), 2.0)
    assert np.count_nonzero(back) == k
    assert (back[back != 0] == 2 * x[back != 0]).all()


def test_each_coordinate_and_each_pair_is_in_equally_often():
    """4000 draws of 3 from 12: binomial counts, 66 pairs and 12 singles within 5.5 standard deviations."""
    draws, d, k = 4000, 12, 3
    ones = np.ones(k, np.float32)
    member = np.array([scatter(ones, d, Key(9, step=t), 1.0) for t in range(draws)])
    for count, p in ((member.sum(axis=0), k / d), ((member.T @ member)[np.triu_indices(d, 1)], 6 / 132)):
        assert np.abs(count - draws * p).max() < 5.5 * np.sqrt(draws * p * (1 - p))


@pytest.mark.parametrize("d", [1, 2, 10, 1001])
@pytest.mark.parametrize("omega", [0.1, 1.5, 1.6, 9.0, 1e5])
def test_distortions_compose_to_the_declared_one(d, omega):
    k, inner = sizes(d, omega, 1.5)
    assert 1 <= k <= d
    assert inner > 0
    assert (1 + inner) * d / k - 1 == pytest.approx(omega, rel=1e-9)
