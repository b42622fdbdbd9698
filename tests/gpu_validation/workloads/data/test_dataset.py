import numpy as np
import pytest
import torch

from gpu_validation.workloads.data import Dataset, load
from gpu_validation.workloads.data.bundled import Bundled
from gpu_validation.workloads.data.dataset import Samples, hold_out, permutation, standardised
from operators import Key


def test_a_permutation_is_one_and_depends_on_its_key_alone():
    one = permutation(Key(3), 1000)

    assert sorted(one) == list(range(1000))
    np.testing.assert_array_equal(one, permutation(Key(3), 1000))
    assert (one != permutation(Key(4), 1000)).any()


def test_small_permutations_are_equally_likely():
    counts = {}
    for seed in range(6000):
        order = tuple(permutation(Key(seed), 3))
        counts[order] = counts.get(order, 0) + 1

    # 6 orders, n = 6000: chi-square with 5 degrees of freedom exceeds 40 with probability 1.5e-7
    assert len(counts) == 6
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < 40


def test_held_out_samples_are_the_complement():
    inputs, targets = np.arange(50.0).reshape(25, 2), np.arange(25)
    kept, held = hold_out(inputs, targets, 0.2)

    assert (len(kept), len(held)) == (20, 5)
    assert sorted([*kept.targets.tolist(), *held.targets.tolist()]) == list(range(25))
    for part in (kept, held):
        assert torch.equal(part.inputs[:, 0].long(), 2 * part.targets)
    with pytest.raises(ValueError, match=r"held_out must satisfy 0 <= held_out < 1; got 1\.0"):
        hold_out(inputs, targets, 1.0)


def test_standardised_columns_and_constant_ones():
    found = standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))

    np.testing.assert_array_equal(found, [[-1, 0], [1, 0]])


def test_the_checksum_sees_values_types_and_shapes():
    def checksum(inputs):
        part = Samples(torch.tensor(inputs), torch.zeros(2, dtype=torch.int64))
        return Dataset("x", part, part, 2, synthetic=True).sha256

    seen = {checksum(x) for x in ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 5.0]], [[1, 2], [3, 4]], [1.0, 2.0])}
    assert len(seen) == 4


def test_a_source_is_read_once():
    assert load(Bundled("iris")) is load(Bundled("iris"))
