"""Wrong plain functions are accused, most of them exactly."""

import pytest

from operators.laws import Budget, adapt, check

from .wrong_functions import MEASURED, REPORTED

DECISIVE = ["output-form", "zero", "sure-contraction", "exact-marginals", "enumeration"]
BUDGET = Budget(sizes=(1, 2, 8, 9, 1000), drawn_sizes=(2, 8)).untimed()


def adapted(wrong):
    return adapt(wrong.function, claim=wrong.claim, library=wrong.library, domain=wrong.domain)


@pytest.mark.parametrize("name", [*MEASURED, *REPORTED])
def test_wrong_function_is_accused_without_statistics(name):
    wrong = {**MEASURED, **REPORTED}[name]

    report = check(adapted(wrong), budget=BUDGET, seed=31, laws=DECISIVE)

    assert report.failures, str(report)


def test_there_are_seventeen_kinds_and_ten_reports():
    assert len(MEASURED) >= 17
    assert len(REPORTED) >= 10
