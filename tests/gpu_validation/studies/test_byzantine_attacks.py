"""Attacks do what their names say, leave the caller's gradient alone, and state how often their votes are right."""

import numpy as np
import pytest

from gpu_validation.studies.byzantine_attacks import Collude, Negate, RandomSigns, Rescale
from operators import Key

ATTACKS = [Rescale(), RandomSigns(), Negate(), Collude()]
OWN = np.array([1.0, -2.0, 0.5, -3.0] * 5000, np.float32)
TRUTH = np.array([1.0, -1.0, -1.0, 1.0] * 5000, np.float32)


def send(attack, **key):
    return attack.corrupt(OWN, truth=TRUTH, key=Key(3, **key))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_same_key_same_lie_and_the_honest_gradient_is_not_modified(attack):
    before = OWN.copy()
    first = send(attack)
    assert first.dtype == np.float32
    assert np.array_equal(first, send(attack))
    assert np.array_equal(OWN, before)


def test_rescaling_keeps_the_direction_and_spans_the_decades():
    factors = np.array([send(Rescale(), rank=i)[0] / OWN[0] for i in range(400)])
    assert np.allclose(send(Rescale(), rank=7) / OWN, factors[7])
    assert 1 <= factors.min() < 10 < 1000 < factors.max() < 1e4
    assert abs(np.log10(factors).mean() - 2) < 4 * 4 / np.sqrt(12 * 400)


def test_random_signs_are_fair_coins_per_coordinate():
    kept = send(RandomSigns()) == OWN
    assert np.array_equal(np.abs(send(RandomSigns())), np.abs(OWN))
    assert abs(kept.mean() - 0.5) < 4 * 0.5 / np.sqrt(OWN.size)
    assert not np.array_equal(send(RandomSigns()), send(RandomSigns(), step=1))


def test_negation_and_collusion():
    assert np.array_equal(send(Negate(2.0)), -2 * OWN)
    assert np.array_equal(send(Collude(10.0)), -10 * TRUTH)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_stated_chance_of_a_right_vote(attack):
    """Honest signs here are right in half of the coordinates: n = 20,000, 4 standard errors."""
    right = (np.sign(send(attack)) == TRUTH).mean()
    assert abs(right - attack.right(0.5)) < 4 * 0.5 / np.sqrt(OWN.size)
    assert attack.right(1.0) == {"rescale": 1.0, "random_signs": 0.5, "negate": 0.0, "collude": 0.0}[attack.name]
