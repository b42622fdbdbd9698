"""A fault at one coordinate, wherever it is, or in the tail of a bucket is accused; honest compressors are not."""

import numpy as np
import pytest
import torch

from bounds.claims import NoClaim, StrictlyContractive, Unbiased
from operators import (
    QSGD,
    Key,
    KLevel,
    NaturalCompression,
    RandomK,
    RotatedKLevel,
    ScaledRandomK,
    SphericalCompression,
    TernGrad,
    TopK,
)
from operators.laws import Budget, Outcome, check
from operators.laws.operator.every_coordinate import WANTED, Answers

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
    monkeypatch.setattr("operators.laws.operator.every_coordinate.PURSUED_SHARE", 0)
    little = verdict(keep_half, Unbiased(omega=1.0))

    assert enough.outcome is little.outcome is Outcome.PASS
    assert enough.text.endswith("a half would have been seen at 100 % of the coordinates")
    assert little.text.endswith("a half would have been seen at 0 % of the coordinates")


@pytest.mark.every(2)
@pytest.mark.parametrize("name", HONEST)
def test_honest_function_is_not_accused(name):
    found = verdict(*HONEST[name])

    assert found.outcome is Outcome.PASS
    assert found.text.startswith("18240 of 18240 coordinates of 18 lengths up to 4097 answered")


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


def kinds(y, kind, i):
    """The output with one coordinate, or a pair, wrong."""
    y = y.clone()
    if kind == "swapped":
        y[[i - 1, i]] = y[[i, i - 1]]
    else:
        y[i] *= {"halved": 0.5, "zeroed": 0.0, "doubled": 2.0, "flipped": -1.0, "honest": 1.0}[kind]
    return y


def wrong_operator(operator, kind, i, only):
    """The operator with the coordinate wrong at the length ``only``, or at every length that has it."""

    def decode(self, message, *, d, key=None):
        y = type(operator).decode(self, message, d=d, key=key)
        return kinds(y, kind, i) if d > i and only in (None, d) else y

    return type("Wrong", (type(operator),), {"decode": decode})(**vars(operator))


def as_function(operator):
    """The operator with a key that torch draws."""

    def function(x):
        return operator(x, key=Key(int(torch.randint(1 << 40, ()))))

    return function


PLACES = [  # unbiased and biased, deterministic and random operators; at one length or at all of them
    (QSGD(levels=16), "halved", 3333, 4097),
    pytest.param(RotatedKLevel(k=16), "swapped", 640, 1000, marks=pytest.mark.thorough),
    (KLevel(k=16), "zeroed", 2901, 4097), (TernGrad(), "doubled", 77, 1000),
    (RandomK(fraction=0.2), "flipped", 999, 1000), (ScaledRandomK(fraction=0.8), "halved", 412, 1000),
    (TopK(fraction=0.2), "halved", 1234, 4097), (SphericalCompression(alpha=0.5), "halved", 519, 1000),
    (NaturalCompression(), "flipped", 4000, 4097), (QSGD(levels=5), "halved", 71, None),
]  # fmt: skip
HONEST_OPERATORS = [
    TopK(fraction=0.2), TernGrad(), RandomK(fraction=0.2), KLevel(k=16), SphericalCompression(alpha=0.5),
    ScaledRandomK(fraction=0.8), QSGD(levels=5),
]  # fmt: skip
TWO_LENGTHS = Budget(lengths=(1000, 4097)).untimed()


@pytest.mark.every(3)
@pytest.mark.parametrize("form", [lambda operator: operator, as_function], ids=["operator", "function"])
@pytest.mark.parametrize(("operator", "kind", "i", "only"), PLACES, ids=repr)
def test_one_wrong_coordinate_of_one_length_fails(form, operator, kind, i, only):
    wrong = form(wrong_operator(operator, kind, i, only))
    report = check(wrong, claim=operator.claim, budget=TWO_LENGTHS, seed=4, laws=[LAW])
    assert report.failures


@pytest.mark.every(4)
@pytest.mark.parametrize("operator", HONEST_OPERATORS, ids=repr)
def test_a_coordinate_that_is_not_touched_does_not_fail(operator):
    report = check(wrong_operator(operator, "honest", 90, None), budget=TWO_LENGTHS, seed=5, laws=[LAW])
    assert not report.failures
    assert float(report[LAW].text.split("seen at ")[1].split(" %")[0]) > 45


def test_a_shorter_last_bucket_of_an_honest_quantiser_hides_no_half():
    operator = QSGD(levels=8, bucket=64)
    budget = Budget(lengths=(65, 257, 1025)).untimed()
    assert check(operator, budget=budget, seed=6, laws=[LAW])[LAW].text.endswith("at 100 % of the coordinates")
    assert check(wrong_operator(operator, "halved", 700, 1025), budget=budget, seed=6, laws=[LAW]).failures


def test_where_nothing_is_claimed_no_half_is_said_to_be_seen():
    def claim(d):
        return Unbiased(omega=1.0) if d < 100 else NoClaim("not proved")

    report = check(keep_half, claim=claim, budget=Budget(lengths=(64, 192)).untimed(), seed=7, laws=[LAW])
    assert report[LAW].text.endswith("seen at 25 % of the coordinates")


def test_coordinate_that_answers_otherwise_is_the_first_suspect():
    rng = np.random.default_rng(0)
    answers = Answers(40)
    for turn in range(60):
        x = answers.vector(rng, sparse=turn % 2 == 1)
        y = x.astype(float) * (1 + 0.1 * rng.standard_normal(40))
        y[17] *= 0.5
        answers.add(x, y)

    assert (answers.n >= WANTED).all()
    assert answers.dissent().argmax() == 17
    assert answers.dissent(0.5)[[3, 38]].min() > answers.dissent()[[3, 38]].max()


def test_coordinate_that_never_answers_is_the_most_silent():
    answers = Answers(8)
    x = np.ones(8, np.float32)
    answers.add(x, np.where(np.arange(8) == 5, 0.0, x))

    assert answers.missing().tolist() == [5]
    assert answers.silence().argmax() == 5
