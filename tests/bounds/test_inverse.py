"""Inverses: round trips between dimension, bits and distortion, on the feasible side, and certified edges."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import certified_inverse, inverse, limits

DISTORTION_LIMITS = [
    (limits.worst_case_bits, "alpha"),
    (limits.average_strict_bits, "alpha"),
    (limits.sphere_bits, "alpha"),
    (limits.contractive_bits, "alpha"),
    (limits.unbiased_bits, "omega"),
    (limits.sphere_unbiased_bits, "omega"),
    (limits.sparse_dithering_bits, "nu"),
    (limits.spherical_compression_simple_bits, "alpha"),
]


@pytest.mark.every(3)
@pytest.mark.parametrize(("bound", "unknown"), DISTORTION_LIMITS, ids=lambda value: getattr(value, "name", value))
@settings(max_examples=10)
@given(d=st.integers(2, 10**6), distortion=st.floats(0.01, 0.9))
def test_distortion_comes_back_from_its_bits(bound, unknown, d, distortion):
    bits = bound(d=d, **{unknown: distortion})
    found = inverse(bound, unknown, bits, d=d)
    assert bound(d=d, **{unknown: found}) <= bits  # the feasible side
    if bound is limits.worst_case_bits and bits <= 1.0000001 * limits.worst_case_bits(d=d, alpha=1 - 2**-53):
        return  # log2(d + 1) decides: a whole range of distortions has these bits
    assert found == pytest.approx(distortion, rel=1e-6)


@settings(max_examples=25)
@given(d=st.integers(2, 10**9), alpha=st.floats(1e-4, 0.9))
def test_dimension_comes_back_from_its_bits(d, alpha):
    bits = limits.contractive_bits(d=d, alpha=alpha)
    assert abs(inverse(limits.contractive_bits, "d", bits * (1 + 1e-13), alpha=alpha) - d) <= 1e-12 * d
    found = inverse(limits.worst_case_bits, "d", limits.worst_case_bits(d=d, alpha=alpha), alpha=alpha)
    assert isinstance(found, int)
    assert found >= d or abs(found - d) <= 1e-12 * d


def test_the_edge_is_the_last_feasible_integer():
    d = inverse(limits.worst_case_bits, "d", 100, alpha=0.1)
    assert limits.worst_case_bits(alpha=0.1, d=d) <= 100 < limits.worst_case_bits(alpha=0.1, d=d + 1)


def test_extreme_distortions_are_reached():
    assert inverse(limits.contractive_bits, "alpha", 2000, d=10) == pytest.approx(2.0**-400, rel=1e-9)
    near_one = inverse(limits.contractive_bits, "alpha", 1e-9, d=1)
    assert 1 - near_one == pytest.approx(2e-9 * 0.6931471805599453, rel=1e-6)


@pytest.mark.parametrize("bits", ["10.5", "100", "3000"])
def test_certified_distortion_is_enclosed_by_neighbours(bits):
    inside, outside = certified_inverse(limits.average_strict_bits, "alpha", bits, d=100)
    assert Fraction(limits.average_strict_bits.enclose(alpha=inside, d=100).hi) <= Fraction(bits)
    assert Fraction(limits.average_strict_bits.enclose(alpha=outside, d=100).lo) > Fraction(bits)
    assert abs(inside - outside) <= Fraction(1, 10**11) * inside


def test_certified_dimension_is_two_neighbours():
    inside, outside = certified_inverse(limits.worst_case_bits, "d", "100", alpha="0.1")
    assert (inside, outside) == (58, 59)


def test_impossible_targets_are_refused():
    with pytest.raises(ValueError, match="exceeds 1 already at d = 1"):
        inverse(limits.contractive_bits, "d", 1, alpha=0.01)
    with pytest.raises(ValueError, match=r"at least 6\.65821 at every alpha .*; got 2: give 6\.65821 or more"):
        inverse(limits.worst_case_bits, "alpha", 2, d=100)
    with pytest.raises(ValueError, match="for every d"):
        inverse(limits.contractive_bits, "d", 1e30, alpha=0.5)
    with pytest.raises(TypeError, match="takes alpha, d"):
        inverse(limits.contractive_bits, "omega", 1, d=3)
