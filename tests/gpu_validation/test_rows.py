"""Rows of studies: exact intervals for shares, the verdict that follows from each side, facts without chance."""

import pytest
from scipy.stats import binomtest

from gpu_validation.records import Verdict
from gpu_validation.rows import exact_row, mean_row, out_of_scope, share_interval, share_row, unjudged_row

ABOUT = {"operator": "o", "quantity": "q"}


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (178, 20_000)])
def test_share_interval_is_that_of_clopper_and_pearson(hits, trials):
    expected = binomtest(hits, trials).proportion_ci(confidence_level=0.99, method="exact")
    assert share_interval(hits, trials, 0.01) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize(
    ("bound", "side", "verdict"),
    [
        (0.9, "upper", Verdict.HOLDS),
        (0.5, "upper", Verdict.INCONCLUSIVE),
        (0.1, "upper", Verdict.VIOLATED),
        (0.1, "lower", Verdict.HOLDS),
        (0.9, "lower", Verdict.VIOLATED),
        (0.5, "tight", Verdict.NOT_CONTRADICTED),
        (0.1, "tight", Verdict.VIOLATED),
    ],
)
def test_verdict_of_a_share(bound, side, verdict):
    assert share_row(50, 100, bound, side, level=0.01, **ABOUT).verdict is verdict


def test_mean_row_uses_its_level():
    values = [1.0, 2.0, 3.0]
    wide, narrow = (mean_row(values, 2.5, "upper", level=level, **ABOUT) for level in (0.01, 0.9))
    assert wide.verdict is Verdict.INCONCLUSIVE
    assert narrow.verdict is Verdict.HOLDS
    assert wide.n == 3


def test_facts_and_rows_without_a_verdict():
    assert exact_row(0, 0.0, True, **ABOUT).verdict is Verdict.HOLDS
    assert exact_row(1, 0.0, False, **ABOUT).verdict is Verdict.VIOLATED
    row = unjudged_row([1.0, 2.0], "no theorem", **ABOUT)
    assert (row.verdict, row.reason, row.bound) == (Verdict.OUT_OF_SCOPE, "no theorem", None)
    judged = share_row(1, 2, 0.9, "upper", level=0.1, **ABOUT)
    assert out_of_scope(judged, "colluders").bound == 0.9
    assert out_of_scope(judged, "colluders").reason == "colluders"
