"""Wrong plain functions are accused, most of them exactly."""

import pytest

from operators.laws import Budget, adapt, check

from .wrong_functions import MEASURED, REPORTED

DECISIVE = ["sure-contraction", "exact-marginals", "enumeration", "output-form", "zero"]
SHORT, LONG = (Budget(sizes=sizes, drawn_sizes=(2, 8), shrinking=0).untimed() for sizes in ((2, 9), (9, 1000)))
LONG_ONLY = ("coordinate 700", "last coordinate of a long")


def adapted(wrong):
    return adapt(wrong.function, claim=wrong.claim, library=wrong.library, domain=wrong.domain)


@pytest.mark.every(4)
@pytest.mark.parametrize("name", [*MEASURED, *REPORTED])
def test_wrong_function_is_accused_without_statistics(name):
    wrong = {**MEASURED, **REPORTED}[name]

    budget = LONG if name.startswith(LONG_ONLY) else SHORT
    reports = (check(adapted(wrong), budget=budget, seed=31, laws=[law]) for law in DECISIVE)

    assert any(report.failures for report in reports)


def test_there_are_seventeen_kinds_and_ten_reports():
    assert len(MEASURED) >= 17
    assert len(REPORTED) >= 10
