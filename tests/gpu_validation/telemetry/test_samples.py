"""Bounded memory loses nothing that a verdict rests on: moments are exact, groups enclose, rounds are the same ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.records.compression import ATOMS, Sample
from gpu_validation.telemetry.samples import KEPT_ROUNDS, KeptRound, Stream, Thinned, joined, pooled

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300)


def draws_within(sample, values):
    """Whether the groups hold all values: for every threshold at least and at most as many as there are."""
    lows = np.sort(np.repeat([low for low, _, _ in sample.atoms], [n for _, _, n in sample.atoms]))
    highs = np.sort(np.repeat([high for _, high, _ in sample.atoms], [n for _, _, n in sample.atoms]))
    ordered = np.sort(values)
    return (lows <= ordered).all() and (ordered <= highs).all()


@given(VALUES, VALUES)
def test_joined_samples_are_the_sample_of_all_draws(a, b):
    found, whole = joined(Sample.of(a), Sample.of(b)), Sample.of(a + b)

    assert (found.n, found.low, found.high) == (whole.n, whole.low, whole.high)
    size = max(abs(whole.low), abs(whole.high), 1e-30)
    assert found.mean == pytest.approx(whole.mean, abs=1e-12 * size)
    assert found.sd == pytest.approx(whole.sd, abs=1e-7 * size)
    assert len(found.atoms) <= ATOMS
    assert draws_within(found, a + b)


def test_a_stream_of_a_million_rounds_keeps_as_little_as_one_of_a_thousand():
    rng = np.random.default_rng(0)
    sizes, values = [], rng.gamma(2.0, size=30_000)
    stream = Stream()
    for i, value in enumerate(values):
        stream.add(float(value))
        if i + 1 in (1_000, 30_000):
            sizes.append(len(stream.sample().atoms))
    stream.add(math.inf)
    sample = stream.sample()

    assert max(sizes) <= ATOMS
    assert (sample.n, stream.odd) == (values.size, 1)
    assert sample.mean == pytest.approx(values.mean(), rel=1e-12)
    assert sample.sd == pytest.approx(values.std(ddof=1), rel=1e-9)
    widest = max(high - low for low, high, _ in sample.atoms)
    assert widest <= 3 * (sample.high - sample.low) / ATOMS
    assert draws_within(sample, values)


def test_pooling_nothing_is_nothing():
    assert pooled([None, None]) is None
    assert pooled([None, Sample.of([1.0])]) == Sample.of([1.0])


@pytest.mark.parametrize("rounds", [1, 512, 513, 1025, 9_000])
def test_ranks_keep_the_same_rounds_whatever_they_measured(rounds):
    kept = Thinned()
    for index in range(rounds):
        if kept.wants(index):
            kept.add(KeptRound(index, index, 1, 0.0, 0.0, 8, math.nan))
        kept.take_fresh()

    assert len(kept.rounds) <= KEPT_ROUNDS
    assert [one.index for one in kept.rounds] == list(range(0, rounds, kept.stride))
    assert rounds <= KEPT_ROUNDS or len(kept.rounds) >= KEPT_ROUNDS // 2


def test_a_kept_round_survives_json():
    one = KeptRound(3, 24, 8, math.nan, 0.5, 100, 0.25, checksum=7)
    assert KeptRound.of(one.row()).row() == one.row()
    assert KeptRound.of(one.row()).checksum == 7
    with pytest.raises(TypeError):
        KeptRound.of([1, 2])
