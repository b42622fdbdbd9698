"""Spherical Compression: exact expected bits, the order of its bounds, a simulation of the real protocol."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds import limits
from bounds.special.golomb import golomb_parameter


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 10**6))
def test_exact_bits_lie_between_the_limit_and_the_simple_bounds(alpha, d):
    exact = limits.spherical_compression_bits(alpha=alpha, d=d)
    slack = 1e-12 * exact
    assert limits.average_strict_bits(alpha=alpha, d=d) + 31 <= exact + slack
    assert exact <= limits.spherical_compression_simple_bits(alpha=alpha, d=d) + slack
    assert limits.spherical_compression_simple_bits(alpha=alpha, d=d) < limits.spherical_compression_published_bits(
        alpha=alpha, d=d
    )


def test_published_constant_is_three_and_the_tight_one_1_4755():
    at = {"alpha": 0.3, "d": 40}
    worst = limits.average_strict_bits(**at) + 31
    assert limits.spherical_compression_published_bits(**at) - worst == pytest.approx(3, abs=1e-10)
    assert limits.spherical_compression_simple_bits(**at) - worst == pytest.approx(1.4755, abs=1e-10)


@pytest.mark.parametrize(("d", "alpha", "bits"), [(2, 0.1, 4.689), (5, 0.2, 8.419), (8, 0.3, 10.132), (10, 0.5, 8.530)])
def test_expected_index_bits(d, alpha, bits):
    assert abs(limits.spherical_compression_bits(alpha=alpha, d=d) - 31 - bits) <= 0.6e-3


def test_simulated_protocol_spends_the_expected_bits():
    # 3000 messages of the real index and code, d = 5, alpha = .2; five standard errors
    d, alpha, n, generator = 5, 0.2, 3000, np.random.default_rng(2)
    m = golomb_parameter(limits.average_strict_bits(alpha=alpha, d=d))
    k = m.bit_length() - 1
    lengths = []
    for _ in range(n):
        index = 0
        while True:
            v = generator.standard_normal((256, d))
            hits = np.flatnonzero(v[:, 0] >= math.sqrt(1 - alpha) * np.linalg.norm(v, axis=1))
            if hits.size:
                index += int(hits[0])
                break
            index += 256
        quotient, remainder = divmod(index, m)
        lengths.append(quotient + 1 + (k if remainder < 2 ** (k + 1) - m else k + 1))
    expected = limits.spherical_compression_bits(alpha=alpha, d=d) - 31
    assert abs(np.mean(lengths) - expected) <= 5 * np.std(lengths) / math.sqrt(n)


def test_at_equal_mean_error_it_loses_to_the_sphere_rate():
    for d, loss in ((100, 2.68), (1000, 4.33), (10**6, 9.31)):
        from bounds.special.cap_probability import cap_mean_cosine

        effective = 1 - cap_mean_cosine(0.1, d) ** 2
        gap = limits.average_strict_bits(alpha=0.1, d=d) - limits.sphere_bits(alpha=effective, d=d)
        assert gap == pytest.approx(loss, abs=0.03)
