"""A report as an assertion of one's own test."""

import pytest

from bounds.claims import Unbiased
from operators import ScaledSign
from operators.laws import Budget, Outcome, Report, Verdict, check


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
