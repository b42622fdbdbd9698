"""Rates for the mean of vectors that different workers hold: the cut, what attains it, and integers on one scale."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

from bounds.limits import (
    exact_sum_rate,
    gathered_rate,
    mean_exchange_rate,
    mean_received_rate,
    shared_scale_rate,
    two_shot_rate,
)


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


# -- the limit of any exchange ---------------------------------------------------------------------------------------
def largest_over_noise(m, nmse, nu=None):
    """Formula (2) of the derivation at the best variance of the helper noise, or at a given one, for one worker."""
    m, nmse = mp.mpf(m), mp.mpf(nmse)
    c = m / (m - 1)
    nu = 2 * c / (m - 2 - m * c * nmse) if nu is None else mp.mpf(nu)
    log2 = lambda x: mp.log(x, 2)  # noqa: E731
    return (m / 2 * log2(1 / (c * nmse)) + (m - 2) / 2 * log2(nu + 1 / nmse) + log2(nu) - m / 2 * log2(c + nu)) / m


def cells():
    """(m, nmse): 3 to 10^6 workers, errors from 10^-10 to the largest with a limit."""
    for m in (3, 4, 5, 8, 16, 64, 1000, 10**6):
        top = (m - 1) * (m - 2) / m**2
        yield from ((m, float(nmse)) for nmse in np.append(np.geomspace(1e-10, 0.999 * top, 470), top * (1 - 1e-9)))


@pytest.mark.parametrize(
    ("m", "nmse", "value"),
    [
        (3, 0.01, "3.58738266578"),
        (4, 0.01, "4.17645534909"),
        (8, 0.21, "1.44538400023"),
        (16, 0.0054, "6.70347190610"),
        (16, 0.001, "8.98394670966"),
        (64, 1e-6, "19.4974615959"),
        (10**6, 0.001, "9.96575250336"),
    ],
)
def test_the_limit_of_any_exchange_has_its_published_digits(m, nmse, value):
    assert mean_exchange_rate(m=m, nmse=nmse) == pytest.approx(float(value), rel=1e-11)


@pytest.mark.parametrize(("m", "nmse"), [(3, "0.2"), (4, "0.37"), (7, "1e-9"), (16, "0.8"), (10**9, "1e-5")])
def test_the_limit_of_any_exchange_is_the_largest_over_the_helper_noise(m, nmse):
    with mp.workdps(50):
        best = largest_over_noise(m, nmse)
        c = mp.mpf(m) / (m - 1)
        nu = 2 * c / (m - 2 - m * c * mp.mpf(nmse))
        assert all(best > largest_over_noise(m, nmse, nu * factor) for factor in (0.9, 1.1, 100, 0.01))
        interval = mean_exchange_rate.enclose(m=m, nmse=nmse)
        assert interval.lo - 1e-15 <= best <= interval.hi + 1e-15
        assert mean_exchange_rate(m=m, nmse=float(nmse)) == pytest.approx(float(best), rel=1e-13)


def test_the_limit_of_any_exchange_lies_between_the_cut_and_the_better_schedule():
    m, nmse = map(np.array, zip(*cells(), strict=True))
    m = m.astype(float)
    limit, cut = mean_exchange_rate(m=m, nmse=nmse), mean_received_rate(m=m, nmse=nmse)
    best = np.minimum(two_shot_rate(m=m, nmse=nmse), gathered_rate(m=m, nmse=nmse))
    assert len(m) > 3500
    assert (cut <= limit * (1 + 1e-12)).all()
    assert (limit <= best * (1 + 1e-12)).all()


@pytest.mark.slow  # 3768 pairs of certified values take a minute
def test_certified_values_of_the_limits_are_in_the_same_order():
    for m, nmse in cells():
        at = {"m": m, "nmse": nmse}
        cut, limit = mean_received_rate.enclose(**at), mean_exchange_rate.enclose(**at)
        assert cut.lo <= limit.hi
        assert limit.lo <= min(two_shot_rate.enclose(**at).hi, gathered_rate.enclose(**at).hi)


@pytest.mark.parametrize(
    ("m", "nmse", "above"),
    [(3, 0.01, 1.311120), (4, 0.01, 1.398083), (16, 1e-3, 1.252492), (64, 1e-6, 1.095868), (10**6, 1e-3, 0.999659)],
)
def test_two_shots_are_about_one_bit_above_the_limit(m, nmse, above):
    difference = two_shot_rate(m=m, nmse=nmse) - mean_exchange_rate(m=m, nmse=nmse)
    assert difference == pytest.approx(above, abs=1e-6)


def test_two_shots_are_within_one_and_a_half_bits_of_the_limit_at_small_errors():
    m = np.arange(3, 3000.0)
    for nmse in (1e-2, 1e-6, 1e-12):
        difference = two_shot_rate(m=m, nmse=nmse) - mean_exchange_rate(m=m, nmse=nmse)
        assert difference.max() < 1.42


def test_an_exact_sum_takes_what_a_ring_takes():
    for m, k in [(2, 2), (3, 12), (64, 32)]:
        ring = 2 * (m - 1) * Fraction(k, m)  # m - 1 shards to be added and m - 1 sums
        assert exact_sum_rate(m=m, word_bits=k) == pytest.approx(float(ring), rel=1e-15)


def sums_within(m, n_symbols):
    """Whether some order of n one-bit messages, each the sum of a subset of what its sender knows, gives all the sum.

    A linear protocol over bits: a state is the space of linear forms that each rank knows, all rank i knows at first is
    x_i.  All protocols are searched, breadth first.
    """

    def span(space, vector):
        return frozenset(space | {a ^ vector for a in space})

    start = tuple(frozenset({0, 1 << i}) for i in range(m))
    total, states = (1 << m) - 1, {start}
    for _ in range(n_symbols):
        states = {
            (*state[:j], span(state[j], vector), *state[j + 1 :])
            for state in states
            for i in range(m)
            for vector in state[i] - {0}
            for j in range(m)
            if i != j and vector not in state[j]
        }
    return any(all(total in space for space in state) for state in states)


@pytest.mark.parametrize("m", [2, 3])
def test_no_linear_protocol_of_bits_sums_with_fewer_messages(m):
    least = 2 * (m - 1)  # m times exact_sum_rate(m, word_bits=1)
    assert sums_within(m, least)
    assert not sums_within(m, least - 1)
