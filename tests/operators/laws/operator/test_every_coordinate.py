"""A fault at one coordinate, wherever it is, or in the tail of a bucket is accused; honest compressors are not."""

import numpy as np
import pytest
import torch

from bounds.claims import StrictlyContractive, Unbiased
from operators import NaturalCompression, RandomK, ScaledRandomK, TopK
from operators.laws import Budget, Outcome, check
from operators.laws.kit.answers import WANTED, Answers

from ..wrong_functions import half, keep_half, linear, random_k, rounding

LAW = "every-coordinate"


def top_tenth(x):
    out = torch.zeros_like(x)
    largest = x.abs().topk(max(1, len(x) // 10)).indices
    out[largest] = x[largest]
    return out


def of_top_tenth(d):
    return StrictlyContractive(1 - max(1, d // 10) / d)


HONEST = {
    "keep half": (keep_half, Unbiased(omega=1.0)),
    "levels": (rounding(lambda p, u: u < p), linear),
    "random half": (lambda x: random_k(x, lambda d, k: d / k), half),
    "top tenth": (top_tenth, of_top_tenth),
}


def off(function, i, factor):
    """The function with one coordinate off."""

    def wrong(x):
        y = function(x)
        if -len(x) <= i < len(x):
            y[i] *= factor
        return y

    return wrong


def short_bucket(x):
    """A last bucket of fewer than 512 coordinates is scaled by one half."""
    y = keep_half(x)
    whole = len(x) // 512 * 512
    if 0 < whole < len(x):
        y[whole:] *= 0.5
    return y


def verdict(function, claim):
    return check(function, claim=claim, seed=3, budget=Budget().untimed(), laws=[LAW])[LAW]


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("name", "i", "factor"),
    [
        ("keep half", 64, 0.5), ("keep half", 2777, 0.5), ("keep half", -1, 0.0), ("levels", 64, 0.5),
        ("random half", 64, 0.5), ("top tenth", -1, 0.0), ("top tenth", 2777, 0.0), ("top tenth", 64, 0.5),
    ],
)  # fmt: skip
def test_function_with_one_coordinate_off_is_accused(name, i, factor):
    function, claim = HONEST[name]
    assert verdict(off(function, i, factor), claim).outcome is Outcome.FAIL


def test_short_last_bucket_that_is_scaled_wrongly_is_accused():
    found = verdict(short_bucket, Unbiased(omega=1.0))

    assert found.outcome is Outcome.FAIL
    assert found.x is None or np.flatnonzero(found.x)[0] >= 512


def test_pass_says_whether_half_a_coordinate_would_have_been_found(monkeypatch):
    enough = verdict(keep_half, Unbiased(omega=1.0))
    monkeypatch.setattr("operators.laws.operator.every_coordinate.DRAWS_SHARE", 0)
    little = verdict(keep_half, Unbiased(omega=1.0))

    assert enough.outcome is little.outcome is Outcome.PASS
    assert "might have been missed" not in enough.text
    assert little.text.endswith("one that is off by 0.5 of its size might have been missed")


@pytest.mark.every(2)
@pytest.mark.parametrize("name", HONEST)
def test_honest_function_is_not_accused(name):
    found = verdict(*HONEST[name])

    assert found.outcome is Outcome.PASS
    assert found.text.startswith("4097 of 4097 coordinates answered")


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("operator", "i", "factor"),
    [(NaturalCompression(), 1500, 0.5), (NaturalCompression(), -1, 0.0), (TopK(fraction=0.1), -1, 0.0)],
)
def test_operator_with_one_coordinate_off_is_accused(operator, i, factor):
    def decode(self, message, *, d, key=None):
        y = type(operator).decode(self, message, d=d, key=key)
        y[i : i + 1 or None] *= factor
        return y

    wrong = type("Off", (type(operator),), {"decode": decode})(**vars(operator))

    assert verdict(wrong, None).outcome is Outcome.FAIL
    assert verdict(operator, None).outcome is Outcome.PASS


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("operator", [RandomK(k=1), ScaledRandomK(k=1)], ids=repr)
def test_selection_that_hardly_ever_takes_a_coordinate_is_not_accused(operator, seed):
    budget = Budget(lengths=(64, 65, 129, 257)).untimed()
    assert check(operator, seed=seed, budget=budget, laws=[LAW])[LAW].outcome is Outcome.PASS


def test_coordinate_that_answers_otherwise_is_the_first_suspect():
    rng = np.random.default_rng(0)
    answers = Answers(40)
    for turn in range(60):
        x = answers.vector(40, rng, sparse=turn % 2 == 1)
        y = x.astype(float) * (1 + 0.1 * rng.standard_normal(40))
        y[17] *= 0.5
        answers.add(x, y)

    assert (answers.n >= WANTED).all()
    assert answers.suspects(1) == [17]


def test_coordinate_that_never_answers_is_a_suspect():
    answers = Answers(8)
    x = np.ones(8, np.float32)
    answers.add(x, np.where(np.arange(8) == 5, 0.0, x))

    assert answers.missing(8).size == 8
    assert 5 in answers.suspects(1)
