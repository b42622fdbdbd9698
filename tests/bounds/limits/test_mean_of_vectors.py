"""Rates for the mean of vectors that different workers hold: the cut, what attains it, and integers on one scale."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from bounds.limits import gathered_rate, mean_received_rate, shared_scale_rate, two_shot_rate


def test_the_cut_is_the_rate_of_the_others_mean():
    for m, nmse in [(2, 0.4), (5, 0.01), (1000, 0.9)]:
        variance, error = (m - 1) / m**2, nmse / m
        assert mean_received_rate(m=m, nmse=nmse) == pytest.approx(0.5 * math.log2(variance / error), rel=1e-12)


def two_stages(m, first, second):
    """(error over the mean's variance, bits a worker receives) of Gaussian test channels, by covariances alone."""
    first, second = Fraction(first), Fraction(second)
    kept = [
        Fraction(1),
        *[1 - first] * (m - 1),
    ]  # of m independent unit vectors; the owner is worker 0
    of_y = sum(kept) / m**2  # variance of the owner's mean; codewords are orthogonal to their errors
    error = sum(1 - share for share in kept) / m**2 + second * of_y
    return float(error * m), (1 - 1 / m) * 0.5 * (math.log2(1 / first) + math.log2(1 / second))


@pytest.mark.parametrize("m", [2, 3, 16, 1000])
@pytest.mark.parametrize("share", [1e-3, 0.1, 0.7, 1.0])
def test_two_shots_reach_their_rate_and_no_other_split_of_the_error_is_better(m, share):
    q, e = 1 - 1 / m, share * (1 - 1 / m)
    nmse, bits = two_stages(m, e / q, e)
    assert two_shot_rate(m=m, nmse=nmse) == pytest.approx(bits, rel=1e-9)
    for other in np.linspace(0.2, 3, 30) * e:
        second = 1 - (1 - nmse) / (1 - other)
        if 0 < other <= q and 0 < second <= 1:
            assert two_stages(m, other / q, second)[1] >= bits * (1 - 1e-9)


def test_two_workers_attain_the_cut_by_gathering():
    nmse = np.geomspace(1e-6, 0.49, 20)
    assert gathered_rate(m=2, nmse=nmse) == pytest.approx(mean_received_rate(m=2, nmse=nmse), rel=1e-12)


@pytest.mark.parametrize("m", [2, 4, 64, 10**6])
def test_two_shots_are_within_a_factor_of_two_of_the_cut_at_small_errors(m):
    nmse = np.array([1e-3, 1e-6, 1e-12])
    ratio = two_shot_rate(m=m, nmse=nmse) / mean_received_rate(m=m, nmse=nmse)
    assert (ratio >= 1 - 1e-12).all()
    assert (ratio < 2 + 2 / np.log2(1 / nmse)).all()
    published = (1 - 1 / m) * np.log2(2 / nmse)  # an owner that compresses its own shard, and e = nmse/2
    assert (two_shot_rate(m=m, nmse=nmse) < published).all()
    assert two_shot_rate(m=m, nmse=nmse) == pytest.approx(
        published + (1 - 1 / m) * 0.5 * math.log2(1 - 1 / m), abs=1e-3
    )


def entropy_of_sum(m, nmse, dithers):
    """H(sum of rounded standard normals | dithers), averaged over rows of dithers in (-1/2, 1/2)."""
    h = math.sqrt(12 * nmse)
    n = np.arange(-int(8 / h) - 2, int(8 / h) + 3)
    entropies = []
    for row in dithers:
        law = np.ones(1)
        for u in row[:m]:
            law = np.convolve(law, np.diff(norm.cdf((np.append(n, n[-1] + 1) - 0.5 - u) * h)))
        law = law[law > 0]
        entropies.append(-float(law @ np.log2(law)))
    return float(np.mean(entropies))


@pytest.mark.parametrize("m", [1, 2, 16])
@pytest.mark.parametrize("nmse", [0.003, 0.1, 0.6])
def test_the_sum_of_integers_is_coded_in_the_stated_bits(m, nmse):
    dithers = np.random.default_rng(24).uniform(-0.5, 0.5, (40, m))
    entropy = entropy_of_sum(m, nmse, dithers)
    stated = shared_scale_rate(m=m, nmse=nmse)
    assert entropy <= stated
    assert stated - entropy < (0.01 if nmse < 0.01 else 0.3)


@pytest.mark.parametrize(
    ("wire", "m", "published"),
    [(4, 4, 0.16), (8, 4, 0.0035), (8, 16, 0.064), (8, 64, 0.42), (16, 16, 1.7e-4), (16, 64, 1.2e-3)],
)
def test_the_published_column_of_shared_scales_is_a_little_below_what_is_proved(wire, m, published):
    """Published: (pi e/6)/(4^b/m - 1) at b bits; proved: (pi e/6) m/(4^b - (pi e/6)(m + 1)) at most."""
    bits = wire / (2 * (1 - 1 / m))
    assumed = math.pi * math.e / 6 / (4**bits / m - 1)
    assert assumed == pytest.approx(published, rel=0.03)
    assert bits < shared_scale_rate(m=m, nmse=assumed) < bits + 0.1
