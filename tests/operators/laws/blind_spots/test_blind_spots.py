"""Wrong compressors that the kit once passed are accused, and what they were made from is not."""

from dataclasses import replace

import pytest

from operators.laws import Budget, check

from . import vectors

SHORT = replace(Budget(), large=1 << 14, shrinking=0).untimed()
LONG = replace(Budget(), large=1 << 20, shrinking=0).untimed()
OF_LENGTHS = [w for w in vectors.WRONG if w.kind in ("lengths", "remainders")]
LONG_ONLY = ("halved beyond", "second half", "index of 16", "not finite", "last coordinate lost")


def named(wrong):
    return f"{wrong.what}-{wrong.form}"


@pytest.mark.every(6)
@pytest.mark.parametrize("wrong", OF_LENGTHS, ids=named)
def test_fault_at_some_lengths_or_remainders_is_found(wrong):
    budget = LONG if wrong.what.startswith(LONG_ONLY) else SHORT

    assert check(wrong.subject, claim=wrong.claim, budget=budget, seed=2, laws=["lengths"]).failures


@pytest.mark.parametrize("honest", vectors.HONEST, ids=named)
def test_honest_subject_is_not_accused_at_any_length(honest):
    report = check(honest.subject, claim=honest.claim, budget=SHORT, seed=3, laws=["lengths"])

    assert report.ok, str(report)
    assert "lengths up to 16" in report["lengths"].text


@pytest.mark.parametrize("kind", ["lengths", "remainders"])
def test_there_are_six_wrong_subjects_of_each_kind_in_both_forms(kind):
    for form in ("Operator", "function"):
        assert len({w.what for w in vectors.WRONG if w.kind == kind and w.form == form}) >= 6
