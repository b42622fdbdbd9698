"""Enumeration: the kit finds the finite randomness of an operator by itself."""

from itertools import combinations

import numpy as np
import pytest

from operators import Key
from operators.laws import Budget, Outcome
from operators.laws.kit.examples import Example
from operators.laws.kit.law import Context, NotApplicable
from operators.laws.kit.subject import Subject
from operators.laws.operator.enumeration import LEAST_TRIALS, SIZES, Claimed, Enumeration, _outcomes
from operators.laws.replay import Controlled
from operators.random import bits32, uniform

from ..honest import Dithering
from ..honest_rotation import Rotated
from ..honest_selection import RandomK

X = np.array([1.0, 2.0, 4.0, 8.0], np.float32)


def outcomes(op, x=X, evaluations=4096):
    return listed(op, x, evaluations, share_s=0.0)[0]


def listed(op, x, evaluations, share_s):
    rng = np.random.default_rng(5)
    budget = Budget(evaluations=evaluations, seconds=4 * len(SIZES) * share_s)
    claimed = Claimed(x, 1e9, False, 20.0, 0.0)
    return _outcomes(Controlled(Subject(op), x, rng), Context(budget, 0), claimed, rng)


def masks(values):
    found, counts = np.unique(values != 0, axis=0, return_counts=True)
    return {tuple(np.flatnonzero(row).tolist()): int(n) for row, n in zip(found, counts, strict=True)}


def test_every_mask_of_random_k_occurs_equally_often():
    seen = masks(outcomes(RandomK()))

    assert set(seen) == set(combinations(range(4), 2))
    assert len(set(seen.values())) == 1


def test_a_mask_by_sorting_words_is_enumerated_by_their_order():
    class Sorted(RandomK):
        def chosen(self, d, key):
            return np.argsort(uniform(key, d)).tolist()[: self.k(d)]

    seen = masks(outcomes(Sorted()))

    assert set(seen) == set(combinations(range(4), 2))
    assert len(set(seen.values())) == 1


def test_signs_in_the_low_bits_of_one_word_are_enumerated_by_their_bits():
    class Flips(RandomK):
        def write(self, x, key):
            word = int(bits32(key, 1)[0])
            flipped = [float(v) * (1 - 2 * (word >> i & 1)) for i, v in enumerate(x)]
            return "".join(f"{np.float32(v).view(np.uint32):032b}" for v in flipped)

        def read(self, reader, d, key):
            return np.array([reader.float32() for _ in range(d)])

    values = outcomes(Flips())

    assert len(values) == 16
    assert len(np.unique(values, axis=0)) == 16
    assert not values.mean(axis=0).any()


def test_signs_of_a_rotation_are_enumerated_with_its_rounding_fixed():
    class Drive(Rotated):
        def write(self, x, key):
            z = self.forth(x, key)
            return f"{np.float32(z @ z / np.abs(z).sum()).view(np.uint32):032b}" + "".join(
                "01" if v >= 0 else "11" for v in z
            )

    t = 0.5
    mean = outcomes(Drive(), np.array([1.0, t], np.float32)).mean(axis=0)

    assert mean == pytest.approx([1 + t * t, 0], abs=1e-6)  # the closed form of the bias at d = 2


def test_continuous_randomness_is_left_undecided():
    with pytest.raises(NotApplicable, match="finite"):
        outcomes(Dithering(s=2), np.array([1.0, 0.3], np.float32))


@pytest.mark.parametrize(
    ("evaluations", "share_s", "trials"), [(2048, 0.0, LEAST_TRIALS), (2048, np.inf, 2048), (256, 0.0, 256)]
)
def test_the_clock_shortens_the_trials_but_not_below_the_least(evaluations, share_s, trials):
    assert listed(RandomK(), X, evaluations, share_s)[1] == trials


def test_keys_do_not_matter_to_an_enumeration():
    assert Key(1) != Key(2)
    assert np.array_equal(outcomes(RandomK()), outcomes(RandomK()))


@pytest.mark.thorough
def test_a_rare_outcome_that_was_never_seen_is_not_mistaken_for_a_bias():
    """Level 1 of 0.9 % probability: the enumeration must allow for it.  n = 60 seeds, level 1e-6 each."""
    law = Enumeration()
    example = Example("rare", np.array([0.009, 1.0], np.float32))
    for seed in range(60):
        verdict = law.judge(Subject(Dithering(s=1)), example, Context(Budget.quick(), seed, parts=7))
        assert verdict.outcome is not Outcome.FAIL, verdict.text
