"""The kit's own proof: every wrong operator is convicted by the law that names its mistake."""

import functools

import pytest

from operators.laws import Budget, Outcome, check
from operators.laws.check import LAWS

from .honest import JUDGED_BY_ALL_LAWS
from .mutants import MUTANTS
from .wrapper_mutants import WRAPPER_MUTANTS

BUDGET = Budget(
    sizes=(1, 2, 9, 64),
    drawn_sizes=(2, 8, 65),
    drawn=2,
    draws=1000,
    bias=0.3,
    lengths=(64, 65),
    shrinking=0,
    large=(1 << 16) + 200,
).untimed()
SMALL = Budget(
    sizes=(1, 9), drawn_sizes=(2, 8), drawn=1, draws=60, evaluations=512, search=10, bias=0.5, large=300
).untimed()


RAISING = {  # convicted because the operator itself raises
    "norm accumulated in binary32",
    "Elias code of a level that may be 0",
    "sign bit written for zeros, not read",
    "Rice remainder one bit narrower than read",
    "no guard for the zero vector",
    "0/0 in an empty sign class",
    "private by declaration, key read by the decoder",
    "strided view read as contiguous",  # with the whole of a longer vector's memory
}


TAKE_LONG = {  # more than two seconds of a processor
    *("half of the words shared by all ranks", "random-k with replacement", "dither subtracted twice"),
    *("omega/n^2 for omega/n", "contraction of the mean too good", "sum divided by n - 1"),
}


def in_its_tier(mutant):
    """The mutant as a parameter, left to CI if its conviction takes long."""
    return pytest.param(mutant, id=mutant.what, marks=[pytest.mark.thorough] if mutant.what in TAKE_LONG else [])


@functools.cache
def parent_passes(index: int, budget: Budget) -> bool:
    mutant = MUTANTS[index]
    report = check(mutant.parent, seed=3, budget=budget, laws=[mutant.law])
    return not report.failures and not report.inconclusive  # a law of form alone judges nothing


FIRST = {(repr(m.parent), m.law): i for i, m in reversed(list(enumerate(MUTANTS)))}


def test_there_are_at_least_forty_five_mutants():
    assert len({m.what for m in MUTANTS}) >= 45


@pytest.mark.every(3)
@pytest.mark.parametrize("mutant", [in_its_tier(mutant) for mutant in MUTANTS])
def test_mutant_is_convicted_by_its_law_and_its_parent_is_not(mutant):
    verdict = check(mutant.wrong, seed=4, budget=BUDGET, laws=[mutant.law])[mutant.law]

    assert verdict.outcome is Outcome.FAIL
    assert verdict.text.startswith("raised ") == (mutant.what in RAISING), verdict.text
    assert mutant.parent in JUDGED_BY_ALL_LAWS or parent_passes(FIRST[repr(mutant.parent), mutant.law], SMALL)


@pytest.mark.parametrize("mutant", [in_its_tier(mutant) for mutant in WRAPPER_MUTANTS])
def test_wrong_wrapper_is_convicted_by_its_law_and_the_right_one_is_not(mutant):
    verdict = check(mutant.wrong, seed=4, budget=BUDGET, laws=[mutant.law])[mutant.law]

    assert verdict.outcome is Outcome.FAIL
    assert check(mutant.parent, seed=4, budget=SMALL, laws=[mutant.law]).ok


@pytest.mark.thorough
def test_too_good_a_contraction_of_the_mean_is_convicted_with_the_standard_budget():
    """Gaussian vectors lie far below a selection's worst error; the flat one reaches it."""
    wrong = next(m.wrong for m in WRAPPER_MUTANTS if m.what == "contraction of the mean too good")

    assert check(wrong, seed=11, budget=Budget().untimed(), laws=["aggregate-claim"]).failures


def test_every_law_convicts_a_mutant():
    convicting = {m.law for m in MUTANTS} | {m.law for m in WRAPPER_MUTANTS}

    by_blind_spots = {"hook-mean"}  # which needs groups of ranks: blind_spots/hooks
    assert not {law.name for law in LAWS} - convicting - by_blind_spots


@pytest.mark.slow
@pytest.mark.parametrize("index", FIRST.values(), ids=lambda i: f"{MUTANTS[i].parent}-{MUTANTS[i].law}")
def test_parent_passes_the_same_law_under_the_same_budget(index):
    assert parent_passes(index, BUDGET)
