"""Intervals hold their level for every law in the declared range: checked by simulation and by a scalar oracle."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.claims import Unbiased
from gpu_validation.judging.comparisons import mean_row
from gpu_validation.judging.compression import compression_rows
from gpu_validation.judging.intervals import (
    ACQUIT,
    RATES,
    STAKES,
    anytime_interval,
    interval_below,
    mean_interval,
    share_interval,
    student_interval,
    variance_interval,
)
from gpu_validation.judging.verdict import Outcome, Verdict
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.studies.grid.planned import of_messages
from operators import Identity, Size
from operators.functions.own import Own

HALF = Own(lambda x: x / 2, 8)

LEVEL = 0.05
RUNS = 250
LAWS = {  # name -> (mean, largest value, draws of shape)
    "lazy, p = .95": (1.0, 1 / 0.95, lambda rng, shape: (rng.random(shape) < 0.95) / 0.95),
    "lazy, p = .5": (1.0, 2.0, lambda rng, shape: (rng.random(shape) < 0.5) / 0.5),
    "rare, p = .01": (1.0, 100.0, lambda rng, shape: (rng.random(shape) < 0.01) / 0.01),
    "skewed, beta(.2, 2)": (1 / 11, 1.0, lambda rng, shape: rng.beta(0.2, 2.0, shape)),
    "skewed, beta(2, .2)": (10 / 11, 1.0, lambda rng, shape: rng.beta(2.0, 0.2, shape)),
    "narrow": (0.5, 1.0, lambda rng, shape: 0.5 + 0.01 * (rng.random(shape) - 0.5)),
    "constant": (0.5, 1.0, lambda rng, shape: np.full(shape, 0.5)),
}


@pytest.mark.every(4)
@pytest.mark.parametrize("n", [6, 16, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("law", LAWS)
def test_each_end_misses_the_mean_no_more_often_than_its_level(law, n):
    mean, top, draw = LAWS[law]
    rng = np.random.default_rng([n, len(law)])
    missed = np.zeros(2, int)
    for row in draw(rng, (RUNS, n)):
        low, high = mean_interval(Sample.of(row), below=LEVEL, above=LEVEL, floor=0.0, ceiling=top)
        missed += low > mean, high < mean

    # P(Binomial(250, .05) > 30) < 1e-5: an end of the stated level passes, Student's (44 % for lazy draws) does not
    assert (missed <= 30).all(), missed


@pytest.mark.every(3)
@pytest.mark.parametrize("n", [6, 16, pytest.param(200, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("law", ["lognormal", "t5", "two-point"])
def test_each_end_by_a_declared_variance_misses_no_more_often_than_its_level(law, n):
    rng = np.random.default_rng([n, len(law)])
    mean, variance, draws = {
        "lognormal": (math.exp(0.5), (math.e - 1) * math.e, np.exp(rng.standard_normal((RUNS, n)))),
        "t5": (0.0, 5 / 3, rng.standard_t(5, (RUNS, n))),
        "two-point": (1.0, 99.0, 100.0 * (rng.random((RUNS, n)) < 0.01)),
    }[law]
    ends = np.array([variance_interval(Sample.of(row), variance, below=LEVEL, above=LEVEL) for row in draws])

    assert (ends[:, 0] > mean).sum() <= 30
    assert (ends[:, 1] < mean).sum() <= 30
    if n == 200:  # as wide as a Gaussian's tail bound, up to a third
        assert np.median(ends[:, 1] - ends[:, 0]) <= 1.33 * 2 * math.sqrt(2 * -math.log(LEVEL) * variance / n)


def test_a_lazy_law_is_not_accused_where_student_s_interval_is_a_point_or_too_narrow():
    rng = np.random.default_rng(5)
    draws = (rng.random((400, 16)) < 0.95) / 0.95
    student = [student_interval(Sample.of(row), 1e-6) for row in draws]
    betting = [mean_interval(Sample.of(row), below=5e-7, above=5e-7, floor=0.0, ceiling=2.0) for row in draws]

    assert sum(row.min() == row.max() for row in draws) > 120  # 16 equal draws: 44 % of the samples
    assert all(
        math.isinf(low) for low, _ in (i for i, row in zip(student, draws, strict=True) if row.min() == row.max())
    )
    assert all(low <= 1.0 <= high for low, high in betting)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8))
def test_the_lower_end_is_where_the_product_over_the_draws_reaches_the_level(values):
    low, _ = mean_interval(Sample.of(values), below=0.2, above=0.2, floor=0.0)

    def capital(mean):  # the definition, without groups or logarithms
        return sum(math.prod(1 + stake * (y / mean - 1) for y in values) for stake in STAKES) / len(STAKES)

    assert low <= sum(values) / len(values) * (1 + 1e-12)
    if low > 1e-6:
        assert capital(low * (1 - 1e-9)) >= 5 * (1 - 1e-6)
        assert capital(low * 1.01) < 5


@settings(max_examples=20)
@given(st.lists(st.floats(0.0, 1.0), min_size=70, max_size=200, unique=True))
def test_groups_of_close_values_only_widen_the_interval(values):
    exact = Sample.of(values)
    fine = Sample(exact.n, exact.mean, exact.sd, exact.low, exact.high, tuple((v, v, 1) for v in sorted(values)))
    wide, narrow = (mean_interval(s, below=0.01, above=0.01, floor=0.0, ceiling=1.0) for s in (exact, fine))

    assert len(exact.atoms) <= 64
    assert sum(count for _, _, count in exact.atoms) == len(values)
    assert wide[0] <= narrow[0] + 1e-12
    assert wide[1] >= narrow[1] - 1e-12
    assert narrow[0] - wide[0] <= 2 / 64


def test_an_open_range_leaves_its_end_open():
    sample = Sample.of([1.0, 2.0, 1.5])

    assert mean_interval(sample, below=0.1, above=0.1, floor=0.0)[1] == math.inf
    assert mean_interval(sample, below=0.1, above=0.1, floor=-math.inf, ceiling=3.0)[0] == -math.inf


def test_a_draw_outside_the_declared_range_is_refused():
    with pytest.raises(ValueError, match=r"must lie in the declared range \[0, 1\]; got \[0.5, 1.5\]"):
        mean_interval(Sample.of([0.5, 1.5]), below=0.1, above=0.1, floor=0.0, ceiling=1.0)


def test_without_a_largest_value_a_draw_above_four_times_the_bound_leaves_the_upper_end_open():
    within, beyond = (
        interval_below(Sample.of([1.0] * 199 + [last]), 2.0, 1e-6, floor=0.0, ceiling=None) for last in (8.0, 1e9)
    )

    assert 0 < within[0] <= beyond[0] < 2  # one huge draw of 200 does not accuse a mean of 2
    assert within[1] == mean_interval(Sample.of([1.0] * 199 + [8.0]), below=ACQUIT, above=ACQUIT, floor=0, ceiling=8)[1]
    assert beyond[1] == math.inf


DRAWS = st.one_of(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=60),
    st.builds(lambda value, n: [value] * n, st.floats(0, 1e3), st.integers(1, 300)),
    st.builds(lambda usual, rare, n: [usual] * n + [rare], st.floats(0, 2), st.floats(2, 1e12), st.integers(1, 300)),
    st.lists(st.sampled_from([0.0, 1.0, math.inf]), min_size=1, max_size=8),
)


@settings(max_examples=150, deadline=None)
@given(DRAWS, st.floats(1e-3, 1e4), st.floats(1e-6, 1e4), st.sampled_from([1e-6, 0.05, 0.4]))
def test_every_interval_contains_the_measured_mean(values, bound, variance, level):
    sample, top = Sample.of(values), max(values)
    ends = {"below": level, "above": level}
    negated = Sample.of([-v for v in values])
    intervals = [
        (sample, interval_below(sample, bound, level, floor=0.0, ceiling=None)),
        (sample, interval_below(sample, bound, level, floor=0.0, ceiling=top)),
        (sample, mean_interval(sample, floor=0.0, **ends)),
        (sample, mean_interval(sample, floor=0.0, ceiling=top, **ends)),
        (negated, mean_interval(negated, floor=-math.inf, ceiling=0.0, **ends)),
        *((s, variance_interval(s, variance, **ends)) for s in (sample, negated)),
        *((s, anytime_interval(s, variance, **ends)) for s in (sample, negated)),
        (sample, student_interval(sample, level)),
    ]

    for drawn, (low, high) in intervals:
        assert low <= drawn.mean <= high


@settings(max_examples=150, deadline=None)
@given(DRAWS, st.floats(1e-3, 1e4), st.sampled_from(["upper", "lower", "tight"]), st.booleans())
def test_no_row_holds_that_its_own_mean_or_a_clipped_draw_contradicts(values, bound, side, declared):
    ceiling = max(*values, 2 * bound) if declared else None
    about = {"operator": "any", "quantity": "any"}
    row = mean_row(values, bound, side, level=1e-4, ceiling=ceiling, margin=bound / 10, **about)

    assert row.interval[0] <= row.measured <= row.interval[1]
    if row.verdict is Verdict.HOLDS:
        assert side == "lower" or row.measured <= bound * (1 + (side == "tight") / 10)
        assert side == "upper" or row.measured >= bound * (1 - (side == "tight") / 10)
        assert declared or side != "upper" or max(values) <= 4 * bound
    if row.verdict is Verdict.INCONCLUSIVE and row.interval[1] == math.inf and side == "upper":
        assert "no largest value is declared" in row.reason


@pytest.mark.parametrize("rare", [9.0, 60.0, 1e9])
def test_a_rare_large_error_never_confirms_a_claim(rare):
    """Mean .7 + .01 rare against a claim of 1: most samples show two such draws or more."""
    rng = np.random.default_rng(3)
    claim = Declared.of(Unbiased(1.0), Size(worst_case=3200))
    for n in (50, 200, 1000):
        ratios = Sample.of(np.where(rng.random(n) < 0.02, rare, 0.7) + 0.01 * rng.random(n))
        messages = Compression("uniform", 100, claim, Sample.of(np.full(n, 3000.0)), ratios, ratios)
        rows = compression_rows(messages, false_alarm=1e-4, operator="mine", workload="uniform")
        (row,) = [row for row in rows if row.quantity == "distortion, mean"]
        assert ratios.high > 4
        assert row.verdict is not Verdict.HOLDS
        assert row.interval[0] <= row.measured <= row.interval[1]


@pytest.mark.parametrize(("operator", "outcome"), [(Identity(), Outcome.EVIDENCE), (HALF, Outcome.SAME_CODE)])
def test_lengths_that_a_function_states_are_no_evidence(operator, outcome):
    messages = of_messages(operator, "gaussian", 8)
    ratios, length = Sample.of(np.linspace(0.1, 0.2, 9)), messages["declared"].exact_bits
    compression = Compression(**messages, bits=Sample.of(np.full(9, length)), ratio=ratios, error_per_coordinate=ratios)
    rows = compression_rows(compression, false_alarm=1e-4, operator="mine", workload="gaussian")
    assert [row.outcome for row in rows if row.theorem == "Operator.bits"] == [outcome]


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf, -math.inf]])
def test_numbers_without_a_mean_are_no_sample(values):
    with pytest.raises(ValueError, match="a sample must"):
        Sample.of(values)


def test_one_draw_or_equal_draws_tell_student_nothing():
    for values in ([3.0], [3.0] * 9):
        assert student_interval(Sample.of(values), 0.05) == (-math.inf, math.inf)


def test_student_s_interval_against_a_table():
    low, high = student_interval(Sample(n=5, mean=10.0, sd=2.0, low=8.0, high=12.0), level=0.05)

    # t_{4, .975} = 2.776445 (standard table)
    assert high - 10 == pytest.approx(2.776445 * 2 / math.sqrt(5), rel=1e-6)
    assert low == pytest.approx(20 - high)


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_share_interval_is_that_of_clopper_and_pearson(hits):
    from scipy.stats import binomtest

    found = binomtest(hits, 20).proportion_ci(confidence_level=0.99, method="exact")
    assert share_interval(hits, 20, 0.01) == pytest.approx((found.low, found.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("law", ["two points", "gaussian"])
def test_anytime_interval_covers_at_every_moment_of_a_run(law):
    """400 runs of 200 draws, looked at after each: at most 1 % may ever reject their mean."""
    rng = np.random.default_rng(5)
    runs, n, level = 400, 200, 0.01
    rare = np.where(rng.random((runs, n)) < 0.02, 7.0, -1 / 7)  # mean 0, variance 1
    draws = rare if law == "two points" else rng.normal(size=(runs, n))
    for sign in (1, -1):
        capital = np.zeros((runs, n))
        for rate in RATES:
            x = rate * sign * draws
            logs = np.cumsum(np.sign(x) * np.log1p(np.abs(x) + x**2 / 2) - rate**2 / 2, axis=1)
            capital += np.exp(logs) / len(RATES)
        left = (capital.max(axis=1) >= 1 / level).sum()
        assert left <= 13, f"{left} of {runs} runs: P(Poisson(4) > 13) = 8e-5"
        for own, last in zip(sign * draws[:20], capital[:20, -1], strict=True):
            low, _ = anytime_interval(Sample.of(own), 1.0, below=1 / last, above=0.5) if last > 1 else (0.0, 0.0)
            assert low == pytest.approx(0, abs=0.3), "the mean that is just rejected, up to the groups"


def test_anytime_interval_shrinks_around_the_mean_and_scales():
    draws = np.random.default_rng(1).normal(2.0, 1.0, size=2000)
    low, high = anytime_interval(Sample.of(draws), 1.0, below=1e-5, above=1e-5)
    assert 1.8 < low < 2.0 < high < 2.2
    wide = anytime_interval(Sample.of(10 * draws), 100.0, below=1e-5, above=1e-5)
    assert wide == pytest.approx((10 * low, 10 * high), rel=1e-6)
    few = anytime_interval(Sample.of([1.0]), 1.0, below=1e-5, above=1e-5)
    assert few[0] < -1
    assert few[1] > 3
