"""Rotations against scalar oracles; the Haar measure's moments; why Hadamard rotations are no substitute."""

import itertools
import math

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Key
from operators.quantisers.rotation import Rotation, prescale, unscale

from ..kernels.equality import hadamard
from ..rotations import haar_matrix, rotated


@pytest.mark.parametrize("d", [1, 2, 3, 8, 63, 64, 65, 100])
@pytest.mark.parametrize("forward", [True, False])
def test_rotation_equals_the_oracle(d, forward, key):
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    rotation = Rotation(d, key)
    turned = rotation.forward(x) if forward else rotation.inverse(x)
    assert turned.dtype == np.float32
    assert turned.tolist() == pytest.approx(rotated(x.tolist(), key, forward), abs=3e-7)


@pytest.mark.parametrize("d", [1, 2, 64, 65, 1000, 4097])
def test_back_undoes_forth_and_the_length_stays(d, key):
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    rotation = Rotation(d, key)
    z = rotation.forward(x)
    assert np.linalg.norm(z) == pytest.approx(np.linalg.norm(x), rel=1e-6)
    assert rotation.inverse(z) == pytest.approx(x, abs=2e-6)
    assert rotation.uniform == (d <= 64)


@pytest.mark.parametrize("d", [1, 2, 5, 64])
def test_first_column_is_the_normalised_gaussian_and_the_matrix_orthogonal(d, key):
    matrix = haar_matrix(key, d)
    assert matrix @ matrix.T == pytest.approx(np.eye(d), abs=1e-12)
    column = Rotation(d, key).forward(np.eye(d, dtype=np.float32)[0])
    assert column == pytest.approx(matrix[:, 0], abs=1e-6)


@pytest.mark.thorough
def test_entries_have_the_moments_of_the_haar_measure():
    """n = 6000 matrices at d = 3: every product moment within 6 standard errors (54 comparisons, level 1e-7).

    Power: E Q_ij^2 = 1/3 off by 0.031 fails with probability 0.98 (standard error 0.0039).
    """
    n, d = 6000, 3
    eye = np.eye(d, dtype=np.float32)
    samples = np.array([[Rotation(d, Key(7, step=i)).forward(e) for e in eye] for i in range(n)], float)
    entries = samples.reshape(n, -1)
    for i, j in itertools.combinations_with_replacement(range(d * d), 2):
        products = entries[:, i] * entries[:, j]
        assert abs(products.mean() - (1 / d if i == j else 0)) < 6 * products.std() / math.sqrt(n)
    fourth = entries**4
    assert (np.abs(fourth.mean(axis=0) - 3 / (d * (d + 2))) < 6 * fourth.std(axis=0) / math.sqrt(n)).all()


@pytest.mark.parametrize(("rounds", "sizes"), [(1, (1.5, 0.5)), (2, (1.0, 0.5))])
def test_a_pair_has_few_images_under_hadamard_rotations(rounds, sizes):
    """All signs of (1, 1/2): the entries' sizes are always the same two, so its direction is far from uniform."""
    divisor = math.sqrt(2) if rounds == 1 else 1
    for words in itertools.product(range(4), repeat=rounds):
        z = hadamard.rotate(torch.tensor([1.0, 0.5]), torch.tensor(words, dtype=torch.int32), rounds)
        assert sorted(z.abs().tolist()) == pytest.approx(sorted(size / divisor for size in sizes), abs=1e-6)


@pytest.mark.parametrize("top", [2.0**-126, 1e-30, 2.0**-40, 1.0, 2.0**40, 1e30, 2.0**127])
def test_moderate_multiplies_by_a_power_of_two(top):
    x = np.array([top, -top / 2, 0], np.float32)
    y, factor = prescale(x)
    assert math.frexp(factor)[0] == 0.5
    assert (y.astype(float) == x.astype(float) * factor).all()
    assert 2.0**-41 < np.abs(y).max() < 2.0**41


def test_enlarged_refuses_what_exceeds_binary32():
    assert unscale(np.array([1, -2], np.float32), 1.5).tolist() == [1.5, -3]
    with pytest.raises(CorruptMessage, match="exceeds binary32"):
        unscale(np.array([1, -2], np.float32), 3e38)
