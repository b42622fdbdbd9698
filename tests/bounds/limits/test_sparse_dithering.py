"""Sparse Dithering: its bounds against the exact worst case by dynamic programming, and the paper's headlines."""

import math

import numpy as np
import pytest

from bounds import limits
from bounds.special.sparse_dithering_rate import SparseDitheringIntegerRate, SparseDitheringRate


def largest_sums(d, nu):
    """T(k) = largest sum of k levels >= 1 with sum (n - 1/2)^2 <= d/(4 nu), by greedy exchange (the cost is convex)."""
    budget, sums = d / (4 * nu) * (1 + 1e-12), {}
    for k in range(1, d + 1):
        if k / 4 > budget:
            break
        low = math.floor(0.5 + math.sqrt(budget / k))  # levels differ by at most one at the optimum
        spare = budget - k * (low - 0.5) ** 2
        sums[k] = k * low + min(k, math.floor(spare / (2 * low)))
    return sums


def worst_bits(d, nu, *, whole):
    """Exact worst case of all field lengths over the number of non-zero levels."""
    worst = 0.0
    for k, total in largest_sums(d, nu).items():
        count, support = math.log2(d), math.log2(math.comb(d, k))
        if whole:
            count, support = math.ceil(count), math.ceil(support - 1e-12)
        worst = max(worst, 31 + count + support + k + total)
    return worst


@pytest.mark.parametrize("nu", [0.5, 0.1, 0.03, 0.01])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 20, 100, 399])
def test_worst_case_stays_within_the_bounds(nu, d):
    fractional, whole = worst_bits(d, nu, whole=False), worst_bits(d, nu, whole=True)
    assert fractional <= limits.sparse_dithering_tight_bits(nu=nu, d=d) + 1e-9
    assert limits.sparse_dithering_tight_bits(nu=nu, d=d) <= limits.sparse_dithering_bits(nu=nu, d=d)
    assert whole <= limits.sparse_dithering_whole_bits(nu=nu, d=d)


def test_headline_holds_from_three_and_fails_below():
    for d in range(3, 400):
        assert worst_bits(d, 0.1, whole=False) <= limits.sparse_dithering_tenth_bits(d=d)
    assert worst_bits(1, 0.1, whole=False) > 30 + math.log2(1) + 3.35  # 34 > 33.35
    assert worst_bits(2, 0.1, whole=False) > 30 + math.log2(2) + 6.7  # 38 > 37.7


def test_headline_fails_with_whole_bit_fields_exactly_where_stated():
    broken = [d for d in range(1, 400) if worst_bits(d, 0.1, whole=True) > 30 + math.log2(d) + 3.35 * d]
    assert broken == [1, 2, 3, 9, 10]


def test_headline_rate_and_its_distance_from_the_optimum():
    assert float(SparseDitheringRate.kernel(0.1)) == pytest.approx(3.34349, abs=5e-6)
    optimum = limits.contractive_bits(alpha=0.1, d=10**6) / 10**6
    assert 3.35 - optimum == pytest.approx(1.689, abs=5e-4)
    nu = np.linspace(0.05, 0.2, 3001)
    gap = SparseDitheringRate.kernel(nu) - 0.5 * np.log2(1 / nu)
    assert nu[np.argmin(gap)] == pytest.approx(0.1005, abs=2e-4)  # why nu = 1/10
    assert gap.min() == pytest.approx(1.6825, abs=5e-5)


@pytest.mark.parametrize(("nu", "rate"), [(0.5, 2.1456), (0.2, 2.6236), (0.1, 3.0182), (0.05, 3.4368), (0.01, 4.4778)])
def test_arithmetic_coding_rate(nu, rate):
    best = limits.sparse_dithering_coded_bits.best(nu=nu, d=10**7)
    assert abs(best.value / 1e7 - rate) <= 0.6e-4
    assert best.value < limits.sparse_dithering_tight_bits(nu=nu, d=10**7)
    assert rate < float(SparseDitheringIntegerRate.kernel(nu))


def test_static_law_is_valid_for_every_message():
    # the ideal code length of any feasible level vector stays below the bound, for any tilt
    generator = np.random.default_rng(3)
    for tilt in (0.05, 0.163, 0.5):
        d, nu = 200, 0.1
        bound = limits.sparse_dithering_coded_bits(nu=nu, d=d, tilt=tilt) - 33
        n = np.arange(1, 400)
        partition = 1 + 2 * np.exp(-tilt * (n - 0.5) ** 2).sum()
        for _ in range(50):
            x = generator.standard_t(3, size=d)
            levels = np.floor(np.abs(x) / np.linalg.norm(x) / (2 * math.sqrt(nu / d)) + 0.5)
            used = levels[levels > 0]
            assert d * math.log2(partition) + tilt * np.sum((used - 0.5) ** 2) / math.log(2) <= bound + 1e-9


@pytest.mark.parametrize("omega", [0.03, 0.1, 0.5, 1.0, 3.0])
def test_randomised_form_spends_no_more_than_its_bounds(omega):
    # E bits by Monte Carlo, n = 400 messages of d = 64, standard error below .5 bit; 5 standard errors
    d, n, generator = 64, 400, np.random.default_rng(8)
    for step, bound in (
        (2 * math.sqrt(omega / d), limits.sparse_dithering_random_bits(omega=omega, d=d)),
        ((1 + omega) / math.sqrt(d), limits.sparse_dithering_random_coarse_bits(omega=max(omega, 1.0), d=d)),
    ):
        if step == (1 + omega) / math.sqrt(d) and omega < 1:
            continue
        ratio = np.full(d, 1 / math.sqrt(d)) / step  # equal coordinates need the most bits
        levels = np.floor(ratio) + (generator.random((n, d)) < ratio - np.floor(ratio))
        k, total = (levels > 0).sum(axis=1), levels.sum(axis=1)
        support = np.array([math.log2(math.comb(d, int(j))) for j in k])
        spent = 31 + math.log2(d + 1) + support + k + total
        assert spent.mean() <= bound + 5 * spent.std() / math.sqrt(n)


def test_matched_step_has_worst_variance_omega():
    # u(1 - u) in units of the step, equal coordinates 1/sqrt(d): h^2 d p (1 - p) with p = 1/(1 + omega)
    for omega in (1.0, 2.0, 7.5):
        p = 1 / (1 + omega)
        assert (1 + omega) ** 2 * p * (1 - p) == pytest.approx(omega, rel=1e-14)


@pytest.mark.parametrize(
    ("omega", "own", "old"), [(1, 2.000, 2.085), (2, 1.585, 1.939), (4, 1.122, 1.835), (10, 0.621, 1.743)]
)
def test_randomised_rates_at_high_variance(omega, own, old):
    d = 10**9
    assert limits.sparse_dithering_random_coarse_bits(omega=omega, d=d) / d == pytest.approx(own, abs=6e-4)
    assert limits.sparse_dithering_random_bits(omega=omega, d=d) / d == pytest.approx(old, abs=6e-4)
    assert limits.unbiased_bits(omega=omega, d=d) < own * d


def test_headline_saving_over_floats():
    d = 10**12
    saving = lambda omega: 32 * d / limits.sparse_dithering_random_bits(omega=omega, d=d)  # noqa: E731
    assert saving(0.0921) == pytest.approx(9.9, abs=5e-3)
    assert saving(0.1) == pytest.approx(10.107, abs=5e-4)
    assert limits.sparse_dithering_random_bits(omega=0.25, d=d) / d == pytest.approx(math.log2(3) + 1, rel=1e-9)


def test_headline_with_log_d_fails_at_one_coordinate():
    # d = 1, step 2 sqrt(.1): the ratio 1.58 exceeds 1, so k = 1 surely; the field of k in {0, 1} takes one bit
    ratio = 1 / (2 * math.sqrt(0.1))
    exact = 31 + 1 + 1 + ratio
    usual = 30 + math.log2(1) + math.log2(3) + ratio
    assert exact > usual + 1
