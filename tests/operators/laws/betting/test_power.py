"""What a pass is worth: the words, and the vectors that count."""

from math import inf

import numpy as np
import pytest
import torch

from bounds.claims import Unbiased
from operators.laws import Budget, Outcome, check
from operators.laws.betting.mean_bets import MeanBets
from operators.laws.betting.power import Power, bias_along_x
from operators.laws.kit.law import Context
from operators.laws.kit.statistical import LONG, statistical_examples

LEVEL = 1e-7


def stochastic_sign(x):
    """Unbiased, omega = d - 1 exactly."""
    scale = x.abs().max()
    return scale * torch.sign(x / scale + 2 * torch.rand(x.shape) - 1)


@pytest.mark.parametrize("omega", [1.0, 0.1])
def test_unbiased_function_with_too_small_a_constant_is_accused_of_its_error_alone(omega):
    torch.manual_seed(1)
    laws = ("distortion", "unbiasedness")
    report = check(stochastic_sign, claim=Unbiased(omega), budget=Budget.quick().untimed(), seed=1, laws=laws)

    assert [v.law for v in report.failures] == ["distortion"]
    judged = report["unbiasedness"]
    assert judged.outcome is Outcome.PASS or "the claimed constant is refuted" in judged.text


def test_finding_names_the_constant_that_the_bets_on_the_mean_rest_on():
    report = check(lambda x: x / 2, claim=Unbiased(1.5), budget=Budget.quick().untimed(), seed=1, laws=["unbiasedness"])

    assert "E C(x) = x rejected, given E|C(x) - x|^2 <= 1.5 |x|^2" in report["unbiasedness"].text


def test_sizes_at_which_a_claim_is_exact_do_not_vouch_for_the_others():
    """A shrink by 1e-5 is plain at the exact vector and hidden at the other."""
    rng = np.random.default_rng(1)
    bets = MeanBets([np.eye(2)[0], np.eye(4)[0]], [0.0, 1.0])
    for _ in range(20):
        bets.update(0, np.zeros((50, 2)))
        bets.update(1, rng.choice([-0.5, 0.5], (50, 4)))

    assert bias_along_x(bets, LEVEL) > 1e-2
    assert bets.promising(0.05) == 1


def test_where_nothing_is_ever_lost_the_least_bias_shows():
    bets = MeanBets([np.eye(2)[0]], [0.0])
    bets.update(0, np.zeros((50, 2)))
    bets.update(0, np.zeros((50, 2)))

    assert bias_along_x(bets, LEVEL) <= 1e-5


@pytest.mark.parametrize(
    ("power", "text"),
    [
        (Power(), ""),
        (Power(along_x=0.013), "a bias along x below 0.013 |x| would not have been seen"),
        (Power(along_x=inf), "a bias along x might have been missed whatever its size"),
        (
            Power(along_x=0.5, coordinate=inf, excess=0.01),
            "a bias along x below 0.5 |x| or an error above the constant by less than 1 % would not have been seen; "
            "a bias in a single coordinate of a single vector might have been missed whatever its size",
        ),
    ],
)
def test_report_says_what_would_not_have_been_seen(power, text):
    assert str(power) == text


def test_two_long_vectors_are_drawn_at():
    """Of a tight claim with omega = 9 the long flat vector shows a bias of .05 |x| in the fewest draws."""
    names = [e.name for e in statistical_examples(Context(Budget(), 1)) if e.d == LONG]

    assert sorted(names) == [f"Gaussian, d = {LONG}", f"flat, d = {LONG}"]
