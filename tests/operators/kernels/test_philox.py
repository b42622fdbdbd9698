"""The stream is the same on every back end, and tiles hand each word to one coordinate."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ..plain_philox import philox4x32
from .equality import FEW, OTHERS, assert_equal, keys, philox, run

NOTHING = torch.empty(0)


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(keys, st.sampled_from([0, 1, 3, 5, 4096, 5000]), st.sampled_from([0, 1, 3, 4, 4096, 2**34 - 5]))
def test_back_ends_agree(other, key, n, start):
    assert_equal(run("cpu", philox.fill, n, start, *key, NOTHING), run(other, philox.fill, n, start, *key, NOTHING))


def test_words_are_those_of_the_published_function():
    words = philox.fill(11, 4 * 2**32 - 3, 5, 6, NOTHING).tolist()
    for i, word in enumerate(words, start=4 * 2**32 - 3):
        block = i >> 2
        assert word % 2**32 == philox4x32((block % 2**32, block >> 32, 0, 0), (5, 6))[i & 3]


def test_tiles_are_a_permutation_within_each_4096_words():
    order = philox.tiled(torch.arange(2 * 4096 + 3))
    assert order[:4].tolist() == [0, 4, 8, 12]
    assert order[4096 + 1024 + 2] == 4096 + 4 * 2 + 1
    assert order[8192:].tolist() == [8192, 8193, 8194]
    assert (order.sort().values == torch.arange(order.numel())).all()
