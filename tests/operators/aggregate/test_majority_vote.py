"""Majority vote against a scalar oracle, its tie rules, its exact error, and three attacks."""

import itertools
import math

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Key, MajorityVote, Mean, Message, SignSGD, TernGrad
from operators.aggregate.majority_vote import wrong_vote_probability

from ..plain_philox import bits32_numpy


@pytest.mark.parametrize("aggregate", MajorityVote.examples(), ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_vote_equals_the_scalar_oracle(aggregate, n):
    d, keys = 50, [Key(0, rank=r) for r in range(n)]
    xs = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    coins = [1 - 2 * (int(w) >> 31) for w in bits32_numpy(keys[0].shared().fold_in(0), d)]
    tie = {"positive": [1] * d, "negative": [-1] * d, "random": coins}[aggregate.ties]
    totals = [sum(1 if x[i] >= 0 else -1 for x in xs) for i in range(d)]
    assert aggregate.round(list(xs), keys=keys).tolist() == [
        (total > 0) - (total < 0) or t for total, t in zip(totals, tie, strict=True)
    ]


def test_both_directions_cost_d_bits():
    keys = [Key(0, rank=r) for r in range(3)]
    messages = [SignSGD().encode(torch.ones(13), key=k) for k in keys]
    assert [m.bits for m in messages] == [13] * 3
    assert MajorityVote().merge(messages, d=13, keys=keys).bits == 13


def test_order_of_the_workers_does_not_matter():
    xs, keys = list(torch.randn(5, 40, generator=torch.Generator().manual_seed(0))), [Key(0)] * 5
    assert MajorityVote().round(xs, keys=keys).equal(MajorityVote().round(xs[::-1], keys=keys))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("tie", [0.0, 0.5, 1.0])
def test_wrong_vote_probability_equals_the_sum_over_all_outcomes(n, tie):
    right = [0.9, 0.6, 0.55, 0.2, 0.75][:n]
    want = 0.0
    for outcome in itertools.product((1, -1), repeat=n):
        p = math.prod(r if o > 0 else 1 - r for r, o in zip(right, outcome, strict=True))
        want += p * (sum(outcome) < 0) + p * tie * (sum(outcome) == 0)
    assert wrong_vote_probability(right, tie) == pytest.approx(want, abs=1e-14)


def attacked(attack, adversaries, n=27, d=2000, seed=0):
    """Unit gradients with standard normal noise; the first workers attack."""
    rng = np.random.default_rng(seed)
    xs = 1 + rng.standard_normal((n, d))
    return [torch.from_numpy(attack(x, rng) if i < adversaries else x) for i, x in enumerate(xs)]


ATTACKS = {
    "rescaling": lambda x, rng: x * 10 ** rng.uniform(0, 4),
    "sign flips": lambda x, rng: x * rng.choice([-1, 1], x.size),
    "negation": lambda x, rng: -x,
}


@pytest.mark.parametrize(
    ("attack", "adversaries", "accuracy"),
    [("rescaling", 11, 1.0), ("sign flips", 11, 0.99180), ("negation", 11, 0.82018), ("negation", 13, 0.57380)],
)
def test_vote_survives_the_three_attacks_with_the_exact_accuracy(attack, adversaries, accuracy):
    """S = 1 and Gaussian noise, so honest signs are right with probability Phi(1); n = 2000 coordinates.

    The measured accuracy lies within 5 standard errors of the exact convolution.
    """
    voted = MajorityVote().round(attacked(ATTACKS[attack], adversaries), keys=[Key(0, rank=r) for r in range(27)])
    p = 0.5 * (1 + math.erf(1 / math.sqrt(2)))
    foe = {"rescaling": p, "sign flips": 0.5, "negation": 1 - p}[attack]
    exact = 1 - wrong_vote_probability([p] * (27 - adversaries) + [foe] * adversaries)
    assert exact == pytest.approx(accuracy, abs=2e-5)
    found = float((voted > 0).double().mean())
    assert abs(found - exact) <= 5 * math.sqrt(exact * (1 - exact) / 2000)


def test_plain_mean_is_destroyed_by_rescaling():
    xs = attacked(ATTACKS["rescaling"], 11)
    mean = Mean(TernGrad()).round(xs, keys=[Key(0, rank=r) for r in range(27)])
    assert float((mean - 1).square().mean()) > 100


def test_unknown_tie_rule_and_damage_are_refused():
    with pytest.raises(ValueError, match="ties must"):
        MajorityVote("up")
    with pytest.raises(CorruptMessage):
        MajorityVote().merge([Message(torch.zeros(1, dtype=torch.uint8), 8)], d=9, keys=[Key(0)])
