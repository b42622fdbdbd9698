"""The judge of exchanges: honest ones pass with the power that is asked for, every listed mistake is accused."""

import time

import numpy as np
import pytest
import torch

import operators
from bounds import theorems
from bounds.claims import ConservedMean, Unbiased, UnbiasedMean
from operators.laws import Budget, Outcome, check_mean
from operators.laws.exchange.groups import Group
from tests.operators.laws import wrong_exchanges
from tests.operators.laws.wrong_exchanges import FORGETFUL, LISTED, MORE, QSGD, M, honest

SECONDS = 10
MODERATE = Budget(bias=0.1).untimed()
EXCHANGES = {
    "gather, QSGD": honest.Gather(operators.QSGD(16)),
    "two shots, QSGD": honest.TwoShot(QSGD, QSGD),
    "two shots, TCDQ": honest.TwoShot(operators.TCDQ(0.1), operators.TCDQ(0.1)),
    "shared scale": honest.SharedScale(),
}
TAKE_LONG = {  # more than two seconds of a processor; the others are the quick check of the same
    *("gather, QSGD", "two shots, QSGD", "two shots, TCDQ", "OwnerForgets"),
    *("NumbersEverySecondStep", "RanksShareNumbers", "SilentNaN", "StagesShareNumbers", "SumsInPlace"),
}


def in_its_tier(name, value):
    """The case as a parameter, left to CI if it takes long."""
    return pytest.param(value, id=name, marks=[pytest.mark.thorough] if name in TAKE_LONG else [])


@pytest.mark.parametrize("name", [in_its_tier(name, name) for name in EXCHANGES])
def test_honest_exchanges_pass_with_the_power_that_is_asked_for(name):
    exchange = EXCHANGES[name]

    report = check_mean(exchange, m=3, claim=exchange.claim, budget=MODERATE, seed=1)

    open_laws = {v.law for v in report.verdicts if v.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE)}
    assert open_laws <= {"constant-reached"}, str(report)  # of TCDQ no largest error is declared
    assert not report.failures
    assert report.power.along_x <= MODERATE.bias
    assert report.power.excess < 0.4


@pytest.mark.every(4)
@pytest.mark.parametrize("wrong", [in_its_tier(wrong.name, wrong) for wrong in (*LISTED, *MORE)])
def test_every_wrong_exchange_is_accused_at_the_standard_budget_within_ten_seconds(wrong):
    began = time.process_time()

    report = check_mean(wrong.exchange, m=M, claim=wrong.exchange.claim, seed=2)

    assert wrong.laws & {failure.law for failure in report.failures}, str(report)
    assert time.process_time() - began < SECONDS


def with_memory(cls):
    """A coordinate of a half of all waits a few steps: far less than the two contractions allow, which is 16.5."""
    half = operators.TopK(0.5)
    return check_mean(lambda: cls(half, half), m=M, claim=ConservedMean(5.0), sizes=(8, 64), seed=3)


@pytest.mark.parametrize("cls", [in_its_tier(cls.__name__, cls) for cls in FORGETFUL])
def test_a_residual_that_is_dropped_at_either_end_is_missed(cls):
    assert [failure.law for failure in with_memory(cls).failures] == ["conserved"]


def test_error_feedback_at_both_ends_conserves_the_sum():
    report = with_memory(honest.BothEnds)

    assert report.ok, str(report)
    assert "would not have been seen" in report["conserved"].text


@pytest.mark.parametrize(("omega1", "omega2", "m"), [(3.0, 0.5, 4), (0.1, 0.1, 8), (0.0, 2.0, 2)])
def test_joint_claims_are_the_theorems(omega1, omega2, m):
    two_shot = UnbiasedMean.two_shot(Unbiased(omega1), Unbiased(omega2), m)
    gathered = UnbiasedMean.gathered(Unbiased(omega1), m)
    vectors = {"mean_square": 5.0, "square_of_mean": 2.0, "m": m}

    error = theorems.two_shot_error(omega1=max(omega1, 1e-300), omega2=omega2, **vectors)

    assert two_shot.of_squares * 5 + two_shot.of_mean * 2 == pytest.approx(error, rel=1e-12)
    assert gathered.of_squares * 5 == pytest.approx(
        theorems.gather_error(omega=max(omega1, 1e-300), mean_square=5.0, m=m), rel=1e-12
    )


def test_a_claim_that_is_too_small_by_half_is_refuted():
    exchange = EXCHANGES["two shots, TCDQ"]

    def half(d, m):
        claim = exchange.claim(d, m)
        return UnbiasedMean(claim.of_squares / 2, claim.of_mean / 2)

    report = check_mean(exchange, m=3, claim=half, seed=4)

    assert report["error"].outcome is Outcome.FAIL


def test_a_tight_claim_that_is_too_large_is_refuted():
    report = check_mean(
        honest.plain,
        m=2,
        claim=UnbiasedMean(0.5, 0.5, tight=True),
        sizes=(1, 2),
        budget=Budget(bias=2),
        seed=5,
        ceiling=2.0,
    )

    assert report["constant-reached"].outcome is Outcome.FAIL, str(report)


def test_too_little_power_is_inconclusive_and_never_ok():
    report = check_mean(
        honest.kept_halves, m=2, claim=lambda d, m: UnbiasedMean(1 / m), budget=Budget(bias=1e-3, draws=5), seed=6
    )

    assert report["unbiasedness"].outcome is Outcome.INCONCLUSIVE
    assert not report.ok


def test_arrays_and_plain_functions_are_taken_and_checks_repeat_draw_by_draw():
    def halves(vectors):
        return (2 * vectors * (np.random.random(vectors.shape) < 0.5)).mean(axis=0)  # noqa: NPY002

    reports = [
        check_mean(halves, m=3, claim=Unbiased(1 / 3), library="numpy", budget=Budget.quick().untimed(), seed=7)
        for _ in range(2)
    ]

    assert not reports[0].failures, str(reports[0])
    assert [str(v) for v in reports[0].verdicts] == [str(v) for v in reports[1].verdicts]


def test_a_worker_on_its_own_is_tried_unless_told_otherwise():
    def needs_company(vectors):
        assert len(vectors) > 1, "no other rank"
        return honest.plain(vectors)

    assert "AssertionError" in check_mean(needs_company, m=2, claim=Unbiased(0.0), seed=8)["results"].text
    assert check_mean(needs_company, m=2, claim=Unbiased(0.0), alone=False, seed=8).ok


def test_numbers_that_ignore_the_key_are_told():
    def halves(vectors, key):
        return honest.kept_halves(vectors)

    report = check_mean(halves, m=2, claim=Unbiased(0.5), budget=Budget.quick(), seed=9)

    assert "determinism" in {failure.law for failure in report.failures}


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"m": 1}, ValueError, "m >= 2"),
        ({"sizes": ()}, ValueError, "sizes"),
        ({"library": "jax"}, ValueError, "library"),
        ({"claim": 0.5}, TypeError, "UnbiasedMean"),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(given, error, text):
    with pytest.raises(error, match=text):
        check_mean(honest.plain, **{"m": 2, "claim": Unbiased(0.0)} | given)


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_joint_claims_refuse_what_is_no_factor(value):
    for make in (UnbiasedMean, ConservedMean):
        with pytest.raises(ValueError, match="finite and >= 0"):
            make(value)


def test_at_least_thirteen_mistakes_are_tried():
    assert len({w.name for w in (*LISTED, *MORE)} | {c.__name__ for c in FORGETFUL}) >= 13
    assert isinstance(wrong_exchanges.honest.plain([torch.ones(1)]), torch.Tensor)


def test_the_second_moment_is_that_of_the_claim_over_the_squared_length_of_the_mean():
    vectors = np.array([[3.0, 0.0], [1.0, 2.0]], np.float32)  # mean (2, 1), squares 9 and 5
    group = Group("by hand", np.array([2.0, 1.0], np.float32), vectors)
    assert group.second_moment(UnbiasedMean(of_squares=0.5, of_mean=3.0)) == pytest.approx((0.5 * 7 + 3 * 5) / 5)
