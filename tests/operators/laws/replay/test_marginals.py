"""Exact marginals: the kit finds the distribution of each coordinate by itself, to the last word."""

import math

import numpy as np
import pytest
import torch

import operators
from bounds.claims import Unbiased
from operators import Composition, Key, NaturalCompression, ScaledRandomK, TernGrad
from operators.laws import Budget, check
from operators.laws.kit.law import NotApplicable
from operators.laws.kit.subject import Subject
from operators.laws.kit.verdict import Outcome
from operators.laws.replay import Controlled, marginals, separate
from operators.random import bits32, words_from

from ..honest import Dithering, Natural
from ..honest_rotation import Rotated, Subtractive
from ..honest_selection import MeanSign, RandomK
from ..mutants import MUTANTS

UNTIMED = Budget().untimed()

X = np.array([0.9, -0.31, 0.0, 1e-4, -2.0], np.float32)


def controlled(op, x=X, seed=0):
    return Controlled(Subject(op), x, np.random.default_rng(seed))


def test_words_from_serves_chosen_words_and_only_inside_its_block():
    key = Key(3)
    before = bits32(key, 4)
    with words_from(lambda k, n, start: np.arange(start, start + n, dtype=np.uint32)):
        assert bits32(key, 3, start=2).tolist() == [2, 3, 4]
    assert np.array_equal(bits32(key, 4), before)


def test_controlled_replays_the_operator_on_its_own_words():
    op = Dithering(s=4)
    run = controlled(op)
    words = bits32(Key(9), X.size)

    assert run.n_words == X.size
    assert np.array_equal(run(words), op(X, key=Key(9)).astype(float))


def test_every_coordinate_finds_its_word():
    assert separate(controlled(Dithering(s=4))).tolist() == [0, 1, -1, 3, 4]  # zero reads none that matters


def test_marginals_of_stochastic_rounding_are_those_of_the_formula():
    s = 4
    exact = marginals(controlled(Dithering(s=s)))
    norm = float(np.nextafter(np.float32(np.linalg.norm(X.astype(float))), np.float32(np.inf)))
    a = s * np.abs(X.astype(float)) / norm
    p = a - np.floor(a)

    assert exact.mean == pytest.approx(X.astype(float), abs=1e-8)
    assert exact.square == pytest.approx((norm / s) ** 2 * p * (1 - p), rel=1e-5, abs=1e-9)
    assert (exact.mean_error < 1e-8).all()


def test_marginals_of_subtractive_dither_are_integrated_within_their_error_bound():
    omega = 0.5
    exact = marginals(controlled(Subtractive(omega=omega)))
    norm2 = float(X.astype(float) @ X.astype(float))

    assert (np.abs(exact.mean - X) <= exact.mean_error + 1e-6).all()
    assert abs(exact.square.sum() - omega * norm2) <= exact.square_error.sum() + 1e-6


def test_deterministic_operator_has_itself_as_its_mean():
    exact = marginals(controlled(MeanSign()))
    assert np.array_equal(exact.mean, MeanSign()(X, key=Key(0)).astype(float))
    assert not exact.mean_error.any()


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (RandomK(), "several coordinates|not separate"),
        (Rotated(), "several coordinates|not separate"),
        (next(m.wrong for m in MUTANTS if m.what == "numpy's global generator"), "more than the words"),
    ],
    ids=["random-k", "rotated", "global generator"],
)
def test_what_is_not_separable_is_left_undecided(op, reason):
    np.random.seed(0)  # noqa: NPY002  the last one draws from it; a few draws may be equal by chance
    with pytest.raises(NotApplicable, match=reason):
        marginals(controlled(op))


def test_varying_number_of_words_is_left_undecided():
    class Rejecting(Natural):
        def write(self, x, key):
            rounds = 1
            while bits32(key.fold_in(7), 1, start=rounds)[0] < 2**31:
                rounds += 1
            return super().write(x, key)

    run = controlled(Rejecting())
    wanting = np.zeros(run.n_words, np.uint32)  # every attempt is rejected, so more words are asked for
    with pytest.raises(NotApplicable, match="number of random words varies"):
        run(wanting)


def test_probability_finer_than_any_grid_is_found_to_the_last_word():
    x = np.array([1.0, 1e-6], np.float32)
    exact = marginals(controlled(Dithering(s=1), x))
    assert exact.mean[1] == pytest.approx(1e-6, abs=2.0**-31)
    assert math.isclose(exact.mean[0], 1.0, abs_tol=1e-7)


def test_a_second_word_that_seldom_matters_is_found():
    """TernGrad rounds .98985 up 98 times in 100 after the first operator has rounded: two words decide."""
    op = Composition(NaturalCompression(rounding="stochastic"), TernGrad())
    for x in ([-0.6, 0.98985], [0.04, -1.36245465]):  # the second: 3 times in 100 the second word matters
        for seed in range(20):
            with pytest.raises(NotApplicable):
                separate(controlled(op, np.array(x, np.float32), seed))


def test_a_probability_off_by_one_step_of_the_uniform_numbers_is_no_fault():
    """``torch.rand`` is 0 with probability 2^-24, and then the sign is 0: nobody can draw it better."""

    def stochastic_sign(x):
        scale = x.abs().max()
        return scale * torch.sign(x / scale + 2 * torch.rand(x.shape) - 1)

    def forgetful(x):
        return x * (torch.rand(x.shape) > 1e-4) / (1 - 1e-4)

    honest = check(stochastic_sign, claim=lambda d: Unbiased(d - 1.0), laws=["exact-marginals"], seed=1, budget=UNTIMED)
    wrong = check(forgetful, claim=Unbiased(0.0), laws=["exact-marginals"], seed=1, budget=UNTIMED)
    assert honest["exact-marginals"].outcome is Outcome.PASS
    assert wrong["exact-marginals"].outcome is Outcome.FAIL


@pytest.mark.parametrize("operator", [operators.RandomK(k=1), ScaledRandomK(k=1)], ids=repr)
def test_selection_of_one_in_many_is_not_taken_for_a_constant(operator):
    """No word is found on which a coordinate depends that is chosen once in 65 draws."""
    for seed in range(2):
        report = check(operator, seed=seed, budget=Budget(sizes=(1, 2, 47, 65)).untimed(), laws=["exact-marginals"])
        assert not report.failures, str(report)
