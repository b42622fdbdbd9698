"""Declared sizes, derived by the codecs from their own fields, against the limits that the codecs never see."""

import math

import pytest

from bounds.claims import Contractive, Unbiased
from bounds.limits import (
    contractive_bits,
    sparse_dithering_coded_bits,
    sparse_dithering_random_bits,
    sparse_dithering_random_coarse_bits,
    sparse_dithering_tight_bits,
    spherical_compression_bits,
    topk_index_bits,
    unbiased_bits,
)
from operators import (
    ArithmeticSparseDithering,
    RandomisedSparseDithering,
    SparseDithering,
    SphericalCompression,
    TopK,
    UnbiasedSphericalCompression,
    all_operators,
)
from tests.pooled import pooled

FIELDS = 4  # whole-bit fields and the ending of an arithmetic code, above a limit with fractional fields
INSTANCES = [operator for cls in all_operators().values() for operator in cls.examples()]


@pooled("operator", INSTANCES, ids=repr)
@pytest.mark.parametrize("d", [9, 64, 1000, 10**6])
def test_no_operator_is_below_the_uncertainty_principle(operator, d):
    claim, size = operator.claim(d), operator.bits(d)
    if size.expected_upper is None:
        return
    if isinstance(claim, Unbiased) and claim.omega > 0:
        assert size.expected_upper >= unbiased_bits(d=d, omega=claim.omega)
    elif isinstance(claim, Contractive) and claim.alpha > 0:
        assert size.expected_upper >= contractive_bits(d=d, alpha=claim.alpha)


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("d", [65, 1000, 10**6])
def test_sparse_dithering_declares_the_sharpened_bound(nu, d):
    declared, bound = SparseDithering(nu).bits(d).worst_case, sparse_dithering_tight_bits(nu=nu, d=d)
    assert declared == pytest.approx(bound, abs=FIELDS, rel=1e-9)


@pytest.mark.parametrize("d", [1000, 10**6])
def test_arithmetic_sparse_dithering_declares_nearly_the_coded_bound(d):
    declared, bound = ArithmeticSparseDithering(0.1).bits(d).worst_case, sparse_dithering_coded_bits.best(nu=0.1, d=d)
    assert 0 <= declared - bound.value <= 0.004 * d


@pytest.mark.parametrize("d", [65, 1000, 10**6])
def test_randomised_sparse_dithering_declares_no_more_than_the_bounds(d):
    for omega in (0.01, 0.1, 0.5):
        bound = sparse_dithering_random_bits(omega=omega, d=d)
        assert RandomisedSparseDithering(omega).bits(d).expected_upper <= bound + FIELDS
    for omega in (1.0, 2.0, 10.0):
        bound = sparse_dithering_random_coarse_bits(omega=omega, d=d)
        assert RandomisedSparseDithering(omega).bits(d).expected_upper == pytest.approx(bound, abs=FIELDS, rel=1e-9)


@pytest.mark.parametrize(("alpha", "block"), [(0.1, 2), (0.5, 8), (0.8, 12), (0.3, 8)])
def test_spherical_compression_declares_the_exact_mean(alpha, block):
    want = 7 * spherical_compression_bits(alpha=alpha, d=block)
    assert SphericalCompression(alpha, block).bits(7 * block).expected_upper == pytest.approx(want, rel=1e-12)
    assert UnbiasedSphericalCompression(alpha, block).bits(7 * block).expected_upper == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize(("d", "k"), [(1000, 1), (1000, 10), (10**6, 10**4), (10**6, 3 * 10**5)])
def test_top_k_support_costs_little_more_than_its_enumeration(d, k):
    support = TopK(k=k).bits(d).worst_case - 32 * k
    ideal = topk_index_bits(d=d, kept=k)
    assert ideal <= support <= ideal + 0.6 * k + 6 + math.log2(2 * math.pi * k) / 2  # Stirling's term of C(d, k)
