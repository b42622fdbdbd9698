"""Stochastic rounding: equal bits everywhere, a scalar oracle, exact unbiasedness, and payloads out of range."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import Key
from operators.kernels.philox import Stream, to_nearest
from operators.random import stream, words_from

from .equality import FEW, OTHERS, assert_equal, fields, keys, levels, norms, run, vectors

MOST = [1, 2, 7, 127, 128, 1000, 32768]


def scales_of(x, step):
    return norms.largest(x, step).double()


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(vectors(), st.sampled_from([64, 100, 5000]), st.sampled_from(MOST), keys, st.sampled_from(["own", "one", "all"]))
def test_back_ends_agree(other, x, step, most, key, source):
    words = {"own": None, "one": torch.tensor([-(1 << 31)], dtype=torch.int32)}.get(
        source, torch.arange(x.numel(), dtype=torch.int32) * 987654321
    )
    arguments = (x, step, scales_of(x, step), most, Stream(*key, words))
    assert_equal(run("cpu", levels.signed, *arguments), run(other, levels.signed, *arguments))
    payload = run("cpu", levels.encode, *arguments)
    assert_equal(payload, run(other, levels.encode, *arguments))
    spacings = scales_of(x, step) / most
    decoded = run("cpu", levels.decode, payload, x.numel(), step, spacings, most)
    assert_equal(decoded, run(other, levels.decode, payload, x.numel(), step, spacings, most))
    assert decoded[2]
    assert torch.equal(decoded[1], spacings > 0)


@pytest.mark.parametrize("d", [1, 100, 4096, 4100, 2 * 4096 + 7])
@pytest.mark.parametrize("most", [1, 7, 127])
def test_levels_equal_the_oracle_and_are_what_is_packed(d, most, words_of):
    key = Key(3, step=d)
    x = torch.randn(d, generator=torch.Generator().manual_seed(d))
    scales = scales_of(x, 100)
    rates = [math.nextafter(most / scale, math.inf) for scale in scales.tolist()]
    words = words_of(key, d)
    want = [
        int(math.copysign(math.floor(abs(v) * rates[i // 100] + int(words[i]) / 2**32), v))
        for i, v in enumerate(x.tolist())
    ]
    assert levels.signed(x, 100, scales, most, stream(key, d)).tolist() == want
    payload = levels.encode(x, 100, scales, most, stream(key, d), room=5)
    packed = fields.pack(torch.tensor(want, dtype=torch.int32) + most, levels.width_of(most))
    assert_equal(payload[5:], packed)


def test_largest_coordinate_reaches_the_top_for_every_word_and_no_level_exceeds_it():
    x = torch.from_numpy(np.float32(10) ** np.random.default_rng(0).uniform(-30, 30, 4096).astype(np.float32))
    for most in (1, 3, 7, 10, 127, 1000, 32768):
        scales = scales_of(x, 1)
        for word in (0, -1):
            source = Stream(0, 0, torch.full((4096,), word, dtype=torch.int32))
            assert (levels.signed(x, 1, scales, most, source) == most).all()


def test_mean_over_all_words_of_eight_bits_is_the_coordinate():
    """The rate is 1, but for its excess, and levels have 8 fractional bits: then 256 words have the exact mean."""
    x = torch.arange(-512, 513, dtype=torch.float32) / 256
    scale = torch.full((1,), 2.0, dtype=torch.float64)
    total = torch.zeros(x.numel(), dtype=torch.int64)
    for high in range(256):
        with words_from(lambda key, n, start, w=high << 24: np.full(n, w, np.uint32)):
            total += levels.signed(x, x.numel(), scale, 2, stream(Key(0), x.numel()))
    assert (total == (256 * x).long()).all()


def test_to_nearest_rounds_halves_away_from_zero():
    x = torch.tensor([0.4, 0.5, -0.5, 1.49, -1.5, 2.0])
    scale = torch.full((1,), 2.0, dtype=torch.float64)
    assert levels.signed(x, 6, scale, 2, to_nearest(x.device)).tolist() == [0, 1, -1, 1, -2, 2]


@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
@pytest.mark.parametrize(
    ("field", "spacing", "reached", "valid"),
    [(0, 1.0, True, True), (4, 1.0, True, True), (3, 1.0, False, True), (5, 1.0, False, False), (7, 1.0, False, False),
     (2, 0.0, False, True), (3, 0.0, False, False)],
)  # fmt: skip
def test_levels_out_of_range_are_found(backend, field, spacing, reached, valid):
    payload = fields.pack(torch.tensor([2, 2, field], dtype=torch.int32), 3)
    _, top, good = run(backend, levels.decode, payload, 3, 3, torch.tensor([spacing], dtype=torch.float64), 2)
    assert (top.tolist(), good) == ([reached], valid)
