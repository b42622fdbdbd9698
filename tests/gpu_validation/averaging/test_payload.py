"""Numbers that travel with an averaging arrive bit for bit, through any dtype of model."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.exchange.movements import Payload, gather_rows, scatter_row
from gpu_validation.processes import step_check
from gpu_validation.processes.reduction import fold
from operators import Message

numbers = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -0.0, 2.0**-149])
rows = st.integers(1, 5).flatmap(lambda m: st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=m, max_size=m))


def same(a, b):
    return [math.nan if math.isnan(x) else x for x in a] == pytest.approx(b, rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@given(rows, st.data())
def test_a_mean_over_members_holds_every_members_row(dtype, table, data):
    members = data.draw(st.lists(st.sampled_from(range(len(table))), min_size=1, unique=True).map(sorted))
    sent = [scatter_row(table[rank], rank=rank, world_size=len(table)).to(dtype) for rank in members]

    found = gather_rows(fold(sent), members=members, world_size=len(table))

    for rank, row in zip(members, found, strict=True):
        assert same(row, table[rank])


@given(st.lists(numbers, min_size=1, max_size=4), st.binary(max_size=5), st.integers(0, 7))
def test_a_row_before_a_message_leaves_it_as_it_was(row, payload, missing):
    missing = missing if payload else 0
    message = Message(torch.tensor(list(payload), dtype=torch.uint8), 8 * len(payload) - missing)

    pack = Payload(len(row), world_size=2)
    found, behind = pack.detach(pack.attach(row, message))

    assert same(found, row)
    assert (behind.payload.tolist(), behind.bits) == (list(payload), message.bits)


def test_without_numbers_a_tail_is_the_step_check_alone_and_a_message_is_the_operators():
    pack, message = Payload(0, world_size=3), Message(torch.tensor([5], dtype=torch.uint8), 3)

    assert torch.equal(pack.tail([], rank=1, steps=7, changed=False), step_check.encode(7))
    assert pack.tail_values == step_check.VALUES
    assert pack.attach([], message) is message
    assert pack.detach(message) == ([], message)


def test_a_tail_is_opened_to_every_members_row_and_refuses_other_steps():
    pack = Payload(2, world_size=2)
    tails = [pack.tail([0.1 * rank, math.inf], rank=rank, steps=9, changed=False) for rank in range(2)]
    mean = fold(tails)

    assert tails[0].numel() == pack.tail_values
    found = pack.open_tail(mean, members=range(2), steps=9, changed=False)
    assert same(found[1], [float(np.float32(0.1)), math.inf])
    with pytest.raises(step_check.UnevenSteps):
        pack.open_tail(mean, members=range(2), steps=10, changed=False)
