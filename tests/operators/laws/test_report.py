"""A report as an assertion of one's own test."""

import pytest
import torch

from bounds.claims import Contractive, Unbiased
from operators import ScaledSign, TopK
from operators.laws import Budget, Outcome, Report, Verdict, check
from operators.laws.kit.verdict import About
from ratedist.calls.check import answer_of


def test_a_failing_report_raises_with_all_that_replays_it():
    report = check(lambda x: x / 2, claim=Unbiased(0.1), budget=Budget.quick(), seed=1)
    with pytest.raises(AssertionError) as raised:
        report.raise_if_failed()
    assert str(raised.value) == str(report)
    assert report.reproduce in str(raised.value)
    assert all(failure.law in str(raised.value) for failure in report.failures)


def test_a_report_without_failures_is_handed_on():
    report = check(ScaledSign(), budget=Budget.quick(), seed=1)
    assert report.raise_if_failed() is report


def test_an_inconclusive_report_raises_too():
    report = Report("nobody", 0, (Verdict("mean", Outcome.INCONCLUSIVE, "too few draws"),), "check(nobody)")
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        report.raise_if_failed()


QUICK = Budget.quick().untimed()


def keep_a_quarter(x):
    """Unbiased with omega = 3 exactly."""
    return 4 * x * (torch.rand(x.shape) < 0.25)


def keep_a_quarter_less(x):
    return 0.9 * keep_a_quarter(x)


def of_the_mean(x):
    """Rounds at the mean of two uniform numbers a coordinate: biased, and no word of its own decides a coordinate."""
    largest = x.abs().max()
    words = torch.rand(2, *x.shape)
    return largest * x.sign() * (0.8 * words[0] + 0.2 * words[1] < x.abs() / largest.clamp_min(1e-38))


def test_a_constant_that_is_too_small_is_not_reported_as_a_bias():
    report = check(keep_a_quarter, claim=Unbiased(1.5), budget=QUICK, seed=1)
    assert {verdict.law for verdict in report.failures} <= {"exact-marginals", "enumeration", "distortion"}
    assert any("E|C(x) - x|^2" in verdict.text for verdict in report.failures)
    assert not any("E C(x)" in verdict.text for verdict in report.failures)
    assert "the claimed constant is refuted (see exact-marginals)" in report["lengths"].text


@pytest.mark.parametrize("law", ["lengths", "every-coordinate", "independent-streams"])
def test_a_law_of_the_mean_alone_names_the_constant_too(law):
    report = check(keep_a_quarter, claim=Unbiased(1.5), budget=QUICK, seed=2, laws=[law])
    assert report[law].about is About.CONSTANT
    assert "E|C(x) - x|^2" in report[law].text


def test_a_bias_fails_beside_a_true_constant_and_beside_a_wrong_one():
    laws = ("exact-marginals", "distortion")
    right = check(keep_a_quarter_less, claim=Unbiased(3.0), budget=QUICK, seed=1, laws=laws)
    wrong = check(keep_a_quarter_less, claim=Unbiased(1.0), budget=QUICK, seed=1, laws=laws)
    assert right["distortion"].outcome is not Outcome.FAIL
    for report in (right, wrong):
        assert report["exact-marginals"].text.startswith("E C(x)[")
    assert wrong["distortion"].outcome is Outcome.FAIL


def test_the_report_says_what_only_draws_judged():
    drawn = check(of_the_mean, claim=Unbiased(8.0), budget=QUICK, seed=1, laws=["exact-marginals"])
    exact = check(keep_a_quarter, claim=Unbiased(3.0), budget=QUICK, seed=1, laws=["exact-marginals"])
    assert "by draws alone: exact-marginals: " in str(drawn)
    assert not exact.by_draws_alone
    assert drawn.by_draws_alone in answer_of(drawn).facts.values()


@pytest.mark.parametrize(
    ("op", "claim", "words"),
    [
        (keep_a_quarter, Unbiased(3.0), "claimed unbiased with omega = 3: "),
        (keep_a_quarter, Contractive(0.5), "claimed contractive with alpha = 0.5: "),
        (keep_a_quarter, Unbiased(3.0, tight=True), "claimed unbiased with omega = 3 (reached): "),
        (keep_a_quarter, lambda d: Unbiased(float(d)), "claimed unbiased with omega = 8 at d = 8, 1000 at d = 1000: "),
        (TopK(k=4), None, "claimed surely contractive with alpha = 0.5 at d = 8, 0.996 at d = 1000: "),
        (keep_a_quarter, None, "keep_a_quarter: nothing judged"),
    ],
)
def test_the_headline_names_the_claim(op, claim, words):
    report = check(op, claim=claim, budget=QUICK, seed=1, laws=["zero"])
    assert words in report.headline
    assert answer_of(report).verdict == f"{report.headline}."


def shifted(x):
    """Wrong at zero, in its dtype, its input and its error."""
    return x.add_(1).double()


def test_every_failure_that_is_counted_is_listed():
    report = check(shifted, claim=Unbiased(0.1), budget=QUICK, seed=1)
    assert len(report.failures) > 3
    assert f"{len(report.failures)} fail" in report.headline
    listed = [row[0] for row in answer_of(report).tables[0].rows if row[1].startswith("FAIL")]
    assert listed == [verdict.law for verdict in report.failures]
    assert all(law in str(answer_of(report)) for law in listed)
