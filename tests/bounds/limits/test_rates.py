"""Rates per coordinate: Shannon losses, quantiser and lattice gaps, finite blocklength, water-filling, supports."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from bounds import NotCertifiable, inverse, limits

NMSE = st.floats(1e-9, 1 - 1e-9)


def loss(bound, **at):
    return limits.gaussian_rate(nmse=0.01) - bound(nmse=0.01, **at)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (loss(limits.laplace_rate), 0.104401),
        (loss(limits.generalised_gaussian_rate, shape=0.5), 0.615151),
        (loss(limits.generalised_gaussian_rate, shape=1.0), 0.104401),
        (loss(limits.generalised_gaussian_rate, shape=2.0), 0.0),
        (loss(limits.student_rate, dof=3.0), 0.280990),
        (loss(limits.student_rate, dof=5.0), 0.067588),
        (loss(limits.student_rate, dof=1e7), 0.0),
    ],
)
def test_shannon_losses(value, expected):
    assert abs(value - expected) <= 0.6e-6


@given(NMSE, st.floats(0.2, 20), st.floats(2.05, 1e4), st.floats(0.01, 0.99), st.floats(1e-3, 1e3))
def test_the_gaussian_source_needs_the_most_bits(nmse, shape, dof, weight, ratio):
    top = limits.gaussian_rate(nmse=nmse) + 1e-9
    assert limits.generalised_gaussian_rate(nmse=nmse, shape=shape) <= top
    assert limits.student_rate(nmse=nmse, dof=dof) <= top
    assert limits.gaussian_mixture_rate(nmse=nmse, mixture_weight=weight, variance_ratio=ratio) <= top
    assert limits.sparse_source_rate(nmse=nmse, zero_share=weight) <= top
    assert limits.gaussian_rate(nmse=nmse) <= limits.dithered_gaussian_rate(nmse=nmse)


@pytest.mark.parametrize(
    ("moment", "gap"),
    [
        (1 / 12, 0.25461),
        (5 / (36 * math.sqrt(3)), 0.22686),
        (13 / (120 * math.sqrt(2)), 0.19387),
        (929 / 12960, 0.14597),
        (0.0682973, 0.11108),
        (0.0657707, 0.08389),
        (1 / (2 * math.pi * math.e), 0.0),
    ],
    ids=["Z", "A2", "D4", "E8", "BW16", "Leech", "ball"],
)
def test_lattice_gaps(moment, gap):
    assert abs(limits.lattice_gap(lattice_moment=moment) - gap) <= 0.6e-5


def test_dither_costs_half_a_bit_more_without_knowing_the_source():
    wiener = limits.dithered_gaussian_rate(nmse=0.5) - limits.gaussian_rate(nmse=0.5)
    assert limits.dithered_rate() - wiener == pytest.approx(0.5, rel=1e-12)
    assert wiener == pytest.approx(limits.lattice_gap(lattice_moment=1 / 12), rel=1e-12)


def test_uniform_quantiser_by_direct_cells():
    step = 1.3
    k = np.arange(-40, 41)
    low, high = (k - 0.5) * step, (k + 0.5) * step
    mass = np.where(k > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    first = (np.exp(-low * low / 2) - np.exp(-high * high / 2)) / math.sqrt(2 * math.pi)
    used = mass > 1e-300
    entropy = -np.sum(mass[used] * np.log2(mass[used]))
    error = 1 - np.sum(first[used] ** 2 / mass[used])
    assert limits.uniform_scalar_gap(quantiser_step=step) == pytest.approx(entropy + 0.5 * math.log2(error), rel=1e-10)


def test_uniform_quantiser_gap_falls_from_its_limit_to_zero():
    gap = limits.uniform_scalar_gap(quantiser_step=np.array([0.02, 0.25, 1.0, 2.0, 3.0, 6.0, 12.0]))
    assert gap[0] == pytest.approx(0.254614, abs=1e-6)
    assert np.all(np.diff(gap) < 1e-9)
    assert 0 <= gap[-1] < 1e-6


@pytest.mark.parametrize(
    ("n", "converse", "normal", "achieved"),
    [(100, 1.22078, 1.23732, 1.24975), (1000, 1.07331, 1.07505, 1.07782), (10_000, 1.02356, 1.02373, 1.02416)],
)
def test_finite_blocklength_check_values(n, converse, normal, achieved):
    at = {"d": n, "miss": 0.01, "nmse": 0.25}
    assert abs(limits.gaussian_block_converse(**at) / n - converse) <= 0.6e-5
    assert abs(limits.gaussian_block_normal(**at) / n - normal) <= 0.6e-5
    enough, short = ((achieved + delta) * n for delta in (1e-5, -2e-5))
    assert limits.gaussian_block_miss.best(bits=enough, d=n, nmse=0.25).value <= 0.01
    assert limits.gaussian_block_miss.best(bits=short, d=n, nmse=0.25).value > 0.01 - 2e-4


@given(st.integers(2, 2000), st.floats(0.01, 0.9), st.floats(1e-4, 0.5))
def test_converse_never_exceeds_what_random_codes_achieve(d, nmse, miss):
    necessary = limits.gaussian_block_converse(d=d, miss=miss, nmse=nmse)
    if necessary > 1:
        assert limits.gaussian_block_miss(
            bits=necessary * (1 - 1e-9), d=d, nmse=nmse, radius=math.sqrt(1 - nmse)
        ) >= miss * (1 - 1e-6)


@settings(max_examples=40)
@given(st.integers(2, 500), st.floats(0.05, 0.9), st.floats(0, 2), st.floats(0, 2))
def test_more_bits_never_miss_more_often(d, nmse, first, second):
    low, high = sorted((first * d, second * d))
    misses = limits.gaussian_block_miss(bits=np.array([low, high]), d=d, nmse=nmse, radius=math.sqrt(1 - nmse))
    assert misses[1] <= misses[0] + 1e-12


def test_random_code_probability_is_not_certified():
    with pytest.raises(NotCertifiable, match="float64"):
        limits.gaussian_block_miss.enclose(bits=10, d=10, nmse="0.25", radius="0.9")


def test_water_filling_check_value():
    filled = limits.water_filling([4, 1, "0.25", "0.01"], [100, 1000, 5000, 20000], 285)
    assert filled.level == Fraction(85, 6100)
    assert filled.total.midpoint == pytest.approx(13903.868, abs=6e-4)
    assert filled.layers[3].hi == 0
    isotropic = limits.contractive_bits(alpha=0.1, d=26100)
    assert isotropic == pytest.approx(43351, abs=0.6)


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 50)), min_size=1, max_size=5),
    st.fractions(Fraction(1, 100), 1),
)
def test_water_filling_spends_the_distortion_and_no_split_is_better(layers, share):
    variances, sizes = zip(*layers, strict=True)
    total = sum(v * n for v, n in layers)
    filled = limits.water_filling(variances, sizes, share * total)
    if filled.level is None:
        assert share == 1
        return
    spent = [min(filled.level, Fraction(v)) for v in variances]
    assert sum(n * s for n, s in zip(sizes, spent, strict=True)) == share * total
    other = [share * v for v in variances]  # the same relative error everywhere
    uniform = sum(n / 2 * math.log2(v / o) for (v, n), o in zip(layers, other, strict=True))
    assert filled.total.lo <= uniform * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("bad", [([], [], 1), ([1], [1, 2], 1), ([0], [1], 1), ([1], [0], 1), ([1], [1], 0)])
def test_water_filling_refuses_what_is_not_positive(bad):
    with pytest.raises(ValueError, match=r"positive|one size"):
        limits.water_filling(*bad)


@pytest.mark.parametrize(("d", "kept", "bits"), [(10**6, 10**3, 11401.450), (10**9, 10**6, 11407746.447)])
def test_support_entropies(d, kept, bits):
    assert abs(limits.topk_index_bits(d=d, kept=kept) - bits) <= 0.6e-3


def test_inverse_of_a_rate_is_its_distortion():
    assert inverse(limits.gaussian_rate, "nmse", 3.0) == pytest.approx(4.0**-3, rel=1e-12)
