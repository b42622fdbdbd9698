"""Random-k: a scalar oracle, and every support enumerated."""

import itertools

import numpy as np
import pytest

from operators import CorruptMessage, Key, RandomK
from operators.coding.fixed_width import PIECE
from operators.compressors import random_k
from operators.compressors.random_k import random_support
from operators.random import words_from

from ..plain_philox import bits32_numpy


def floyd(words, k, d):
    """Floyd's sampling in plain Python with exact 64-bit products."""
    chosen = set()
    for i, j in enumerate(range(d - k, d)):
        t = (((int(words[2 * i + 1]) << 32) + int(words[2 * i])) * (j + 1)) >> 64
        chosen.add(j if t in chosen else t)
    return sorted(chosen)


@pytest.mark.parametrize("operator", RandomK.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, bitstring, float_field):
    k = round(d / (1 + operator.claim(d).omega))
    support = floyd(bits32_numpy(key, 2 * k), k, d)
    for x in vectors:
        message = operator.encode(x, key=key)
        assert bitstring(message) == "".join(float_field(x[i]) for i in support)
        want = np.zeros(d, np.float32)
        for i in support:
            want[i] = float(x[i]) * (d / k)
        assert (operator.decode(message, d=d, key=key).numpy() == want).all()
        assert message.bits == operator.bits(d).exact == 32 * k


@pytest.mark.parametrize(("d", "k"), [(5, 1), (5, 2), (6, 3), (4, 4)])
def test_enumerated_supports_are_equally_likely_so_the_mean_is_the_input(d, k):
    """Feed every path of Floyd's draws: each t in 0 .. j once, j = d-k .. d-1."""
    x, counts, mean, square = np.arange(1.0, d + 1), {}, np.zeros(d), 0.0
    paths = list(itertools.product(*(range(j + 1) for j in range(d - k, d))))
    for path in paths:
        high = [-(-(t << 32) // (d - k + i + 1)) for i, t in enumerate(path)]  # the least word that gives t
        words = np.array([w for pair in zip([2**31] * k, high, strict=True) for w in pair], np.uint32)
        with words_from(lambda key, n, start, w=words: w):
            support = tuple(random_support(Key(0), k, d))
            y = RandomK(k=k)(x, key=Key(0))
        counts[support] = counts.get(support, 0) + 1
        mean += y / len(paths)
        square += ((y - x) ** 2).sum() / len(paths)
    assert len(set(counts.values())) == 1
    assert len(counts) == len(list(itertools.combinations(range(d), k)))
    assert mean == pytest.approx(x)
    assert square / (x @ x) == pytest.approx(RandomK(k=k).claim(d).omega)


def test_value_that_overflows_when_enlarged_is_an_error(key):
    with pytest.raises(ValueError, match="rescale"):
        RandomK(k=1).encode(np.full(4, 2e38, np.float32), key=key)


def test_more_than_all_and_wrong_lengths_are_refused(key, message_of):
    with pytest.raises(ValueError, match="k = 5"):
        RandomK(k=5).encode(np.ones(4), key=key)
    for text in ("", "0" * 31, "0" * 33, "01111111110000000000000000000000", "01111111011111111111111111111111"):
        with pytest.raises(CorruptMessage):
            RandomK(k=1).decode(message_of(text), d=9, key=key)


def test_a_support_drawn_in_pieces_is_floyd_s(key, monkeypatch):
    monkeypatch.setattr(random_k, "PIECE", 7)
    assert random_support(key, 40, 100).tolist() == floyd(bits32_numpy(key, 80), 40, 100)


def test_support_of_many_coordinates_is_the_oracles(key):
    """Beyond the bits that are looked through at once."""
    d, k = 8 * PIECE * 2 + 5, 300
    assert random_support(key, k, d).tolist() == floyd(bits32_numpy(key, 2 * k), k, d)
