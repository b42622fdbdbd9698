"""Ternary digits: equal bits everywhere, a scalar oracle, and groups that are impossible."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import Key
from operators.kernels.philox import Stream
from operators.random import stream

from .equality import FEW, OTHERS, assert_equal, keys, levels, run, trits, vectors


def rate_of(x):
    return float(levels.rate_of(1, x.abs().max().double()))


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(vectors(), keys, st.sampled_from([1.0, 0.1, 2.0**-140, 0.0]))
def test_back_ends_agree(other, x, key, scale):
    rate = rate_of(x)
    payload = run("cpu", trits.encode, x, rate, Stream(*key))
    assert_equal(payload, run(other, trits.encode, x, rate, Stream(*key)))
    assert payload.numel() == (trits.trit_bits(x.numel()) + 7) // 8
    decoded = run("cpu", trits.decode, payload, x.numel(), scale)
    assert_equal(decoded, run(other, trits.decode, payload, x.numel(), scale))
    assert decoded[1:] == (bool((x != 0).any()), True)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 99, 4096, 5 * 4096, 5 * 4096 + 3, 50000])
def test_digits_are_the_levels_plus_one_and_come_back(n):
    x, key = torch.randn(n, generator=torch.Generator().manual_seed(n)), Key(n)
    rate = rate_of(x)
    level = levels.signed(x, n, x.abs().max().double().reshape(1), 1, stream(key, n)).tolist()
    groups = [level[i : i + 5] for i in range(0, n, 5)]
    values = [sum((t + 1) * 3**j for j, t in enumerate(group)) for group in groups]
    values[-1] <<= (0, 6, 4, 3, 1)[n % 5]
    payload = trits.encode(x, rate, stream(key, n), room=2)
    assert payload[2:].tolist() == values
    assert trits.decode(payload[2:], n, 2.0)[0].tolist() == [2.0 * t for t in level]


@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
@pytest.mark.parametrize(
    ("payload", "n", "some", "valid"),
    [([121], 5, False, True), ([122], 5, True, True), ([242, 121], 10, True, True), ([243], 5, True, False),
     ([121, 1 << 6], 6, False, True), ([121, 2 << 6], 6, True, True), ([121, 3 << 6], 6, True, False),
     ([81 << 1], 4, True, False), ([40 << 1], 4, False, True)],
)  # fmt: skip
def test_impossible_groups_and_zero_vectors_are_told_apart(backend, payload, n, some, valid):
    _, found, good = run(backend, trits.decode, torch.tensor(payload, dtype=torch.uint8), n, 1.0)
    assert good == valid
    assert found == some or not valid
