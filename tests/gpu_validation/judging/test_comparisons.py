"""Rows of studies: exact intervals for shares, the verdict that follows from each side, facts without chance."""

import pytest
from scipy.stats import binomtest

from gpu_validation.judging.comparisons import exact_row, mean_row, out_of_scope, share_row, unjudged_row
from gpu_validation.judging.verdict import Evidence, Verdict

ABOUT = {"operator": "o", "quantity": "q"}


@pytest.mark.parametrize(
    ("bound", "side", "verdict"),
    [
        (0.9, "upper", Verdict.HOLDS),
        (0.5, "upper", Verdict.INCONCLUSIVE),
        (0.1, "upper", Verdict.VIOLATED),
        (0.1, "lower", Verdict.HOLDS),
        (0.9, "lower", Verdict.VIOLATED),
        (0.5, "tight", Verdict.INCONCLUSIVE),
        (0.1, "tight", Verdict.VIOLATED),
    ],
)
def test_verdict_of_a_share(bound, side, verdict):
    assert share_row(50, 100, bound, side, level=0.01, **ABOUT).verdict is verdict


@pytest.mark.parametrize(
    ("trials", "margin", "verdict"),
    [(100, 0.02, Verdict.INCONCLUSIVE), (100, 0.2, Verdict.HOLDS), (10_000, 0.02, Verdict.HOLDS)],
)
def test_an_equality_needs_an_interval_within_its_margin(trials, margin, verdict):
    row = share_row(trials // 2, trials, 0.5, "tight", level=0.01, margin=margin, **ABOUT)

    assert row.verdict is verdict
    assert row.reason.startswith("not contradicted, not shown") == (verdict is Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("side", "end", "alternative"), [("upper", 0, "greater"), ("lower", 1, "less")])
def test_the_end_that_may_accuse_is_the_one_sided_end_at_the_level(side, end, alternative):
    one_sided = binomtest(50, 100, alternative=alternative).proportion_ci(confidence_level=0.99, method="exact")

    assert share_row(50, 100, 0.5, side, level=0.01, **ABOUT).interval[end] == pytest.approx(one_sided[end], rel=1e-9)


def test_mean_row_uses_its_level():
    values = [1.0, 2.0, 3.0] * 20
    wide, narrow = (mean_row(values, 1.5, "upper", level=level, **ABOUT) for level in (1e-6, 0.1))
    assert wide.verdict is Verdict.INCONCLUSIVE
    assert narrow.verdict is Verdict.VIOLATED
    assert wide.n == 60


def test_few_runs_below_a_bound_do_not_show_that_the_mean_is():
    assert mean_row([1.0] * 5, 3.0, "upper", level=1e-4, **ABOUT).verdict is Verdict.INCONCLUSIVE
    assert mean_row([1.0] * 30, 3.0, "upper", level=1e-4, **ABOUT).verdict is Verdict.HOLDS
    assert mean_row([1.0] * 5, 3.0, "upper", level=1e-4, ceiling=2.0, **ABOUT).verdict is Verdict.HOLDS
    assert mean_row([1.0] * 30, 1.05, "tight", level=1e-4, variance=1e-4, **ABOUT).verdict is Verdict.VIOLATED
    assert mean_row([1.0] * 30, 1.0, "tight", level=1e-4, variance=1e-4, **ABOUT).verdict is Verdict.HOLDS


def test_a_row_says_by_which_factors_its_bound_could_be_wrong():
    held = mean_row([1.0] * 200, 1.2, "upper", level=1e-6, **ABOUT)
    below, above = held.noticed

    assert held.verdict is Verdict.HOLDS
    assert held.evidence is Evidence.INFORMATIVE
    assert above == float("inf")
    assert mean_row([1.0] * 200, 1.2 * below * 0.999, "upper", level=1e-6, **ABOUT).verdict is Verdict.VIOLATED
    assert mean_row([1.0] * 200, 1.2 * below * 1.001, "upper", level=1e-6, **ABOUT).verdict is not Verdict.VIOLATED
    assert mean_row([1.0] * 200, 9.0, "upper", level=1e-6, **ABOUT).evidence is Evidence.POWERLESS
    assert exact_row(3.0, 3.0, True, **ABOUT).noticed == (1.0, 1.0)
    assert unjudged_row([1.0, 2.0], "no theorem", **ABOUT).evidence is None


def test_facts_and_rows_without_a_verdict():
    assert exact_row(0, 0.0, True, **ABOUT).verdict is Verdict.HOLDS
    assert exact_row(1, 0.0, False, **ABOUT).verdict is Verdict.VIOLATED
    row = unjudged_row([1.0, 2.0], "no theorem", **ABOUT)
    assert (row.verdict, row.reason, row.bound) == (Verdict.OUT_OF_SCOPE, "no theorem", None)
    judged = share_row(1, 2, 0.9, "upper", level=0.1, **ABOUT)
    assert out_of_scope(judged, "colluders").bound == 0.9
    assert out_of_scope(judged, "colluders").reason == "colluders"
