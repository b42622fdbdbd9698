"""Markov text: its law, its entropy by enumeration, and that it is what it says it is."""

import itertools
import math

import numpy as np
import pytest

from gpu_validation.workloads import MarkovText
from gpu_validation.workloads.data import load

SMALL = MarkovText(letters=3, window=2)


def test_pairs_are_stationary():
    pairs, chain = SMALL.pairs(), SMALL.chain()

    np.testing.assert_allclose(np.einsum("ab,abc->bc", pairs, chain), pairs, atol=1e-14)
    assert pairs.sum() == pytest.approx(1)
    assert (pairs > 0).all()


def test_floor_is_the_entropy_of_all_windows():
    pairs, chain = SMALL.pairs(), SMALL.chain()
    total = 0.0
    for a, b, c in itertools.product(range(3), repeat=3):  # the letter before, and the two that are predicted
        p = pairs[a, b] * chain[a, b, c]
        total -= p * (math.log(pairs[a, b] / pairs[a].sum()) + math.log(chain[a, b, c]))
    assert SMALL.floor() == pytest.approx(total / 2, rel=1e-12)


def test_letters_follow_the_chain():
    source = MarkovText(letters=3, window=10, samples=3000, held_out=10)
    data = load(source)
    inputs, targets = data.train.inputs.long().numpy(), data.train.targets.numpy()

    assert (inputs[:, 1:] == targets[:, :-1]).all()  # every letter is predicted from those before it
    a, b, c = inputs[:, :-1].ravel(), inputs[:, 1:].ravel(), targets[:, 1:].ravel()
    counts = np.zeros((3, 3, 3))
    np.add.at(counts, (a, b, c), 1)
    pairs = counts.sum(axis=2)
    deviation = np.sqrt(source.chain() * (1 - source.chain()) / pairs[:, :, None])
    assert (np.abs(counts / pairs[:, :, None] - source.chain()) < 5 * deviation).all()


def test_description_says_that_a_formula_made_it():
    found = load(MarkovText(samples=20, held_out=5)).description()
    assert (found.synthetic, found.samples, found.held_out, found.shape, found.classes) == (True, 20, 5, (8,), 6)


def test_senseless_sizes_are_refused():
    with pytest.raises(ValueError, match="need letters >= 2, window >= 1"):
        MarkovText(letters=1)
