"""The choice of a model: fewest estimated bits, classes that depend on the past only, groups large enough."""

import numpy as np
import pytest

from operators.tcdq import fit
from operators.tcdq.model import CLASSES, THRESHOLDS, plan_of
from operators.tcdq.rans import classify, histogram


def packed(magnitudes):
    """Symbols whose |n - u| is about ``magnitudes`` spacings."""
    j = np.rint(64 * np.asarray(magnitudes)).astype(np.int32)
    k, phase = (j + 64) >> 6, 63 - (j & 63)
    return (k << 6 | phase).astype(np.int32)


def magnitudes(symbols):
    k, phase = symbols >> 6, symbols & 63
    return np.where(k > 0, 64 * k - phase - 1, phase - 64 * k)


def test_class_of_a_coordinate_counts_the_thresholds_below_the_fading_sum_before_it():
    symbols = packed(np.random.default_rng(0).exponential(2, 300))
    classes = np.empty(300, np.uint8)
    energy = classify(symbols, 0, THRESHOLDS, 1, classes)
    past = 0
    for j, c in zip(magnitudes(symbols).tolist(), classes.tolist(), strict=True):
        assert c == int((past >= THRESHOLDS).sum())
        past = past - past // 16 + j
    assert len(set(classes.tolist())) > 3
    assert energy == ((2 * magnitudes(symbols) + 1) ** 2).sum()


def test_class_of_a_row_of_sixteen_counts_the_thresholds_below_the_sum_of_the_row_before():
    symbols = packed(np.random.default_rng(0).exponential(2, 200))
    classes = np.empty(13, np.uint8)
    energy = classify(symbols, 0, THRESHOLDS, 16, classes)
    j = magnitudes(symbols)
    past = [0] + [int(j[16 * b : 16 * b + 16].sum()) for b in range(12)]
    assert classes.tolist() == [int((p >= THRESHOLDS).sum()) for p in past]
    assert energy == ((2 * j + 1) ** 2).sum()


@pytest.mark.parametrize(("width", "stride"), [(16, 1), (16, 3), (1, 1)])
def test_histogram_counts_the_levels_of_the_rows_looked_at(width, stride):
    symbols = packed(np.random.default_rng(1).exponential(40, 333))
    counts = np.zeros((CLASSES, fit.LEVELS), np.int64)
    energy = histogram(symbols, 0, THRESHOLDS, width, stride, fit._levels()[0], counts)
    classes = np.empty(-(-333 // width), np.uint8)
    classify(symbols, 0, THRESHOLDS, width, classes)
    j = magnitudes(symbols)
    looked = [i for i in range(333) if i // width % stride == 0]
    assert counts.sum() == len(looked)
    for c in range(CLASSES):
        assert counts[c].sum() == sum(classes[i // width] == c for i in looked)
    assert energy == pytest.approx(((j[looked] + 0.5) ** 2).sum())


def test_levels_are_eighths_of_an_octave():
    level, size = fit._levels()
    j = np.arange(fit.FINE) + 0.5
    assert (np.abs(8 * np.log2(j[8:]) - level[8:] - 0.5) <= 0.5 + 1e-9).all()
    assert size[40 + 8] == pytest.approx(2 * size[40], rel=0.05)


def test_gaussian_data_choose_the_gaussian_and_heavy_tails_a_mixture():
    rng, plan = np.random.default_rng(2), plan_of(50_000, 0.05, 8)
    gauss = packed(np.abs(rng.standard_normal(50_000)) * plan.sigma)
    heavy = packed(np.minimum(np.abs(rng.standard_t(2, 50_000)), 50) * plan.sigma / 3)
    assert fit.choose(gauss, plan).model.mixtures == ()
    assert len(fit.choose(heavy, plan).model.mixtures) >= 1
    assert fit.choose(heavy, plan, 0).model.mixtures == ()


def test_estimated_bits_of_a_gaussian_are_its_entropy():
    d, plan = 100_000, plan_of(100_000, 0.05, 8)
    symbols = packed(np.abs(np.random.default_rng(3).standard_normal(d)) * plan.sigma)
    entropy = np.log2(plan.sigma * np.sqrt(2 * np.pi * np.e))
    assert fit.choose(symbols, plan).bits / d == pytest.approx(entropy, abs=0.01)


def test_groups_hold_enough_coordinates_and_do_not_skip():
    rng = np.random.default_rng(4)
    for _ in range(50):
        sizes = rng.integers(0, 2000, CLASSES) * (rng.random(CLASSES) < 0.5)
        starts = np.array(fit._grouping(sizes))
        assert starts[0] == 0
        assert set(np.diff(starts)) <= {0, 1}
        held = np.bincount(starts, sizes)
        assert held.size == 1 or held.min() >= fit.LEAST_IN_GROUP


def test_fitted_mixture_of_two_scales_finds_both():
    rng = np.random.default_rng(5)
    r = np.abs(np.r_[rng.standard_normal(40_000) * 0.5, rng.standard_normal(40_000) * 8])
    counts = np.bincount(fit._levels()[0][np.rint(64 * r).astype(int)], minlength=fit.LEVELS)[None].astype(float)
    weights = fit._fit(counts)[0].astype(float)
    scale = 2.0 ** (np.arange(weights.size) / 2) / 4
    share = weights / weights.sum()
    assert share[scale < 2].sum() == pytest.approx(0.5, abs=0.05)
    spread = 2.0**0.25  # 25 steps leave some weight at the next half octave
    assert (0.25 + 64) / 2 / spread < (share * scale**2).sum() < (0.25 + 64) / 2 * spread
