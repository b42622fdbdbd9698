"""The integer and support codes: known words, exhaustive round trips, lengths against information."""

import itertools
import math

import numpy as np
import pytest

from operators import CorruptMessage
from operators.bits import elias
from operators.bits.bitstream import padded, words
from operators.coding import range_coder
from operators.coding.support_set import decode_support, encode_support, support_bits
from tests.pooled import pooled


@pytest.mark.parametrize(
    ("n", "word"),
    [(1, "0"), (2, "100"), (3, "110"), (4, "101000"), (8, "1110000"), (16, "10100100000"), (100, "1011011001000")],
)
def test_elias_omega_words_are_the_published_ones(n, word):
    code, width = elias.build(n)
    assert f"{code:0{width}b}" == word
    assert elias.length(n) == len(word)


@pooled("n", [*range(1, 200), 2**20 - 1, 2**20, 2**32 + 5, 2**40])
def test_elias_word_is_parsed_whatever_follows(n):
    code, width = elias.build(n)
    for tail in (0, (1 << (64 - width)) - 1):
        assert elias.parse(np.uint64((code << (64 - width)) | tail)) == (n, width)


def test_endless_ones_are_no_elias_word():
    assert elias.parse(np.uint64(2**64 - 1))[1] == 0


@pytest.mark.parametrize("d", [1, 5, 100, 10**4])
def test_gap_codes_never_exceed_their_majorant(d):
    """Random and even gaps that sum to d + 1, at several prices of a gap."""
    rng = np.random.default_rng(d)
    for price in (0.0, 1.5, 4.0, 9.0):
        for k in {0, 1, min(d, 7), d // 3, d}:
            cuts = np.sort(rng.choice(d, k, replace=False)) + 1
            for ends in (np.r_[0, cuts, d + 1], np.r_[0, np.linspace(1, d, k).astype(int), d + 1]):
                bits = sum(elias.length(int(g)) for g in np.diff(ends) if g > 0)
                assert bits <= price * k + elias.gap_intercept(price, d) + 1e-9


@pytest.mark.parametrize("d", range(1, 11))
def test_every_support_of_a_short_vector_comes_back(d):
    for mask in itertools.product((0, 1), repeat=d):
        levels = np.array(mask, np.int32)
        payload, bits = encode_support(levels, sum(mask))
        assert bits == math.ceil(math.log2(math.comb(d, sum(mask))))
        assert (decode_support(padded(payload), 0, bits, d, sum(mask)) == levels).all()


@pytest.mark.parametrize("d", [65, 66, 300, 5000])
def test_long_supports_come_back_within_two_bits_of_their_information(d):
    rng = np.random.default_rng(d)
    for k in (0, 1, 2, d // 10, d // 2, d - 1, d):
        for _ in range(5):
            levels = np.zeros(d, np.int32)
            levels[rng.choice(d, k, replace=False)] = 1
            payload, bits = encode_support(levels, k)
            assert bits <= support_bits(d, k)
            assert bits <= (math.log2(math.comb(d, k)) + 2 if 0 < k < d else 0) + 1e-9
            assert (decode_support(payload, 0, bits, d, k) == levels).all()


def test_extreme_supports_exercise_the_carry():
    """All ones first, then last: the interval sits at both ends, and long runs of 255 are carried through."""
    d = 400
    for k in (1, 3, 200, 399):
        for levels in (np.r_[np.ones(k), np.zeros(d - k)], np.r_[np.zeros(d - k), np.ones(k)]):
            levels = levels.astype(np.int32)
            payload, bits = encode_support(levels, k)
            assert (decode_support(payload, 0, bits, d, k) == levels).all()
    out = np.array([1, 255, 255, 255, 0], np.uint8)
    range_coder.carry(out, 4)
    assert out.tolist() == [2, 0, 0, 0, 0]


def test_every_wrong_ending_of_a_support_is_refused():
    levels = np.zeros(80, np.int32)
    levels[[0, 7, 79]] = 1
    payload, bits = encode_support(levels, 3)
    accepted = 0
    for value in range(1 << 12):
        text = np.unpackbits(payload)[: bits - 12]
        damaged = np.packbits(np.r_[text, [(value >> i) & 1 for i in range(11, -1, -1)]].astype(np.uint8))
        try:
            mask = decode_support(damaged, 0, bits, 80, 3)
        except CorruptMessage:
            continue
        again, again_bits = encode_support(mask.astype(np.int32), 3)
        assert (again_bits, again.tolist()) == (bits, damaged.tolist())
        accepted += 1
    assert accepted > 1


@pytest.mark.parametrize("seed", range(5))
def test_range_coder_round_trips_any_model_within_two_bits(seed):
    rng = np.random.default_rng(seed)
    totals = rng.integers(2, 1 << int(rng.integers(2, 40)), 300) + 1
    starts = (totals * rng.random(300)).astype(np.int64)
    sizes = np.maximum(1, ((totals - starts) * rng.random(300)).astype(np.int64))
    out, state = np.zeros(2000, np.uint8), range_coder.START
    for symbol in zip(starts, sizes, totals, strict=True):
        low, width, at = range_coder.encode(out, state, *map(int, symbol))
        state = (np.uint64(low), np.uint64(width), at)
    bits = range_coder.close(out, state)
    assert bits <= np.log2(totals / sizes).sum() + 2
    stream = words(out[: (bits + 7) // 8])
    state = _unsigned(range_coder.open_stream(stream, 0, bits))
    for start, size, total in zip(starts.tolist(), sizes.tolist(), totals.tolist(), strict=True):
        assert start <= range_coder.share_of(state, total) < start + size
        state = _unsigned(range_coder.consume(stream, bits, state, start, size, total))
    assert range_coder.finished(state, bits)


def _unsigned(state):
    return (*map(np.uint64, state[:3]), state[3])
