"""The sparse vector's code: equal bits everywhere, its least parameter, and every payload that is cut or damaged."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import CorruptMessage
from operators.kernels.rice import cpu, reference

from . import rice_oracle
from .equality import FEW, OTHERS, SIZES, assert_equal, rice, run


@st.composite
def sparse(draw):
    """(index, values, d): supports that are spread out, crowded at an end, or everything."""
    d = draw(st.sampled_from((*SIZES, 10**6)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    k = draw(st.integers(1, min(d, 70)))
    span = d if draw(st.booleans()) else k + (d - k) // 8
    index = rng.choice(span, k, replace=False)
    index = d - 1 - index if draw(st.booleans()) else index
    values = rng.standard_normal(k) * 10.0 ** rng.integers(-40, 30, k)
    return torch.from_numpy(np.sort(index)), torch.from_numpy(values.astype(np.float32)), d


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(sparse(), st.integers(0, 32))
def test_back_ends_agree_and_the_vector_comes_back(other, vector, head_bits):
    index, values, d = vector
    arguments = (index, values, d, (1 << head_bits) - 1, head_bits)
    payload, bits = run("cpu", rice.pack, *arguments)
    assert_equal((payload, bits), run(other, rice.pack, *arguments))
    assert bits <= head_bits + rice.worst_bits(index.numel(), d)
    assert_equal((index, values), run("cpu", rice.unpack, payload, bits, index.numel(), d, head_bits))
    assert_equal((index, values), rice_oracle.unpack(payload, bits, index.numel(), d, head_bits))


@pytest.mark.parametrize("seed", range(10))
def test_parameter_is_the_least_of_the_best(seed):
    rng = np.random.default_rng(seed)
    gaps = rng.geometric(rng.uniform(0.0005, 1), rng.integers(1, 50)) - 1
    costs = [int(sum((1 + r) + (g >> r) for g in gaps)) for r in range(32)]
    assert cpu.best_parameter(gaps, 10**4) == (costs.index(min(costs)), min(costs))
    assert reference.best_parameter(torch.from_numpy(gaps)) == costs.index(min(costs))


@pytest.mark.parametrize("gaps", [[10**6, 3], [3, 10**6, 0], [32 * 4094 - 1, 0], [32 * 4094, 5, 5], [32 * 4094 + 31]])
def test_quotients_as_long_as_a_buffer_are_written_whole(gaps):
    """Many gaps of 0 keep the parameter at 0."""
    steps = np.array([*gaps, *[0] * 200_000, *gaps])
    index = torch.from_numpy(np.cumsum(steps + 1) - 1)
    values, d = torch.ones(index.numel()), int(index[-1]) + 2
    payload, bits = rice.pack(index, values, d)
    assert_equal(run("reference", rice.pack, index, values, d), (payload, bits))
    assert_equal(rice.unpack(payload, bits, index.numel(), d), (index, values))


@pytest.mark.parametrize("unpack", [rice.unpack, rice_oracle.unpack])
def test_shorter_and_longer_messages_are_refused(unpack):
    index, values = torch.tensor([2, 3, 90]), torch.tensor([1.0, -2.0, 3.0])
    payload, bits = rice.pack(index, values, 100)
    for wrong in (bits - 1, bits - 30, 6, bits + 1):
        with pytest.raises(CorruptMessage):
            unpack(torch.cat([payload, payload]), wrong, 3, 100)
