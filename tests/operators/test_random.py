"""The counter stream: published answers, three equal implementations, addresses, uniformity, no side effects."""

import math

import numpy as np
import pytest
import torch

from operators import Key
from operators.kernels.philox.reference import words64
from operators.random import bits32, normal, philox_key, uniform, words_from
from tests.pooled import pooled

from .plain_philox import bits32_numpy, philox4x32

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers_of_philox(counter, key, answer):
    assert philox4x32(counter, key) == answer


KEYS = [Key(0), Key(7, step=2, rank=3, layer=4), Key(2**64 - 1).shared().fold_in(5)]


@pytest.mark.parametrize("start", [0, 1, 3, 4, 1001, 2**32 * 4 - 3])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 23])
@pooled("key", KEYS, ids=str)
def test_compiled_numpy_and_torch_streams_equal_the_plain_one(key, start, n):
    address = philox_key(key)
    plain = []
    for i in range(start, start + n):
        block = i >> 2
        plain.append(philox4x32((block & ONES, block >> 32, 0, 0), address)[i & 3])
    assert bits32(key, n, start=start).tolist() == plain
    assert bits32_numpy(key, n, start=start).tolist() == plain
    assert words64(n, start, *address, "cpu").tolist() == plain


def test_a_piece_equals_the_same_piece_of_the_whole():
    whole = bits32(Key(1), 1000)
    assert (bits32(Key(1), 300, start=477) == whole[477:777]).all()


def test_every_part_of_a_key_changes_the_stream():
    keys = [
        Key(1), Key(2), Key(1, step=1), Key(1, rank=1), Key(1, layer=1), Key(1).shared(), Key(1).fold_in(0),
        Key(1).fold_in(1), Key(1).fold_in(0).fold_in(0), Key(1).fold_in(0).fold_in(1), Key(1, rank=None, layer=1),
        Key(1 << 32), Key(1, step=1 << 32), Key(1, rank=1 << 32),
    ]  # fmt: skip
    assert len({philox_key(k) for k in keys}) == len(keys)


def test_words_are_uniform_and_streams_are_uncorrelated():
    """n = 2^20 words: chi-square of the top 8 and low 8 bits, and correlations, each at 5 standard deviations."""
    n = 1 << 20
    a, b = bits32(Key(3), n), bits32(Key(3).fold_in(0), n)
    for bits in (a >> 24, a & 0xFF):
        chi = ((np.bincount(bits, minlength=256) - n / 256) ** 2).sum() / (n / 256)
        assert abs(chi - 255) < 5 * np.sqrt(2 * 255)
    u, v = a * 2.0**-32 - 0.5, b * 2.0**-32 - 0.5
    for left, right in ((u, v), (u[1:], u[:-1]), (u[4:], u[:-4])):
        assert abs((left * right).mean()) < 5 / 12 / np.sqrt(n - 4)


def test_uniform_is_the_word_over_two_to_the_32():
    assert (uniform(Key(4), 9, start=2) == bits32(Key(4), 9, start=2) / 2**32).all()


def test_normal_numbers_have_the_moments_of_the_normal_law():
    z = normal(Key(5), 10**5 + 1)  # five standard errors
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) < 5 * np.sqrt(variance / z.size)


def test_global_generators_are_left_alone():
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002  the state is what is tested
    bits32(Key(1), 10), words64(10, 0, 1, 2, "cpu"), normal(Key(1), 10)
    assert (before[0] == np.random.get_state()[1]).all()  # noqa: NPY002
    assert (before[1] == torch.get_rng_state()).all()


def test_supplied_words_end_with_their_block():
    with words_from(lambda key, n, start: np.full(n, start, np.uint32)):
        assert bits32(Key(1), 3, start=7).tolist() == [7, 7, 7]
    assert bits32(Key(1), 3).tolist() == bits32_numpy(Key(1), 3).tolist()


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_normal_numbers_are_those_of_box_and_muller(n):
    pairs = (n + 1) // 2
    u = [(int(word) + 0.5) / 2**32 for word in bits32(Key(3), 2 * pairs)]
    plain = [
        math.sqrt(-2 * math.log(radius)) * turn(2 * math.pi * angle)
        for turn in (math.cos, math.sin)
        for radius, angle in zip(u[:pairs], u[pairs:], strict=True)
    ]
    np.testing.assert_allclose(normal(Key(3), n), plain[:n], rtol=1e-13, atol=1e-13)
