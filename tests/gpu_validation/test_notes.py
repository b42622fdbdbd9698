"""Numbers that travel with an averaging arrive bit for bit, through any dtype of model."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.notes import attach, collect, detach, spread
from gpu_validation.tensors import fold
from operators import Message

numbers = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -0.0, 2.0**-149])
rows = st.integers(1, 5).flatmap(lambda m: st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=m, max_size=m))


def same(a, b):
    return [math.nan if math.isnan(x) else x for x in a] == pytest.approx(b, rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@given(rows, st.data())
def test_a_mean_over_members_holds_every_members_row(dtype, table, data):
    members = data.draw(st.lists(st.sampled_from(range(len(table))), min_size=1, unique=True).map(sorted))
    sent = [spread(table[rank], rank=rank, size=len(table)).to(dtype) for rank in members]

    found = collect(fold(sent), members=members, size=len(table))

    for rank, row in zip(members, found, strict=True):
        assert same(row, table[rank])


@given(st.lists(numbers, min_size=1, max_size=4), st.binary(max_size=5), st.integers(0, 7))
def test_a_row_before_a_message_leaves_it_as_it_was(row, payload, missing):
    missing = missing if payload else 0
    message = Message(torch.tensor(list(payload), dtype=torch.uint8), 8 * len(payload) - missing)

    found, behind = detach(attach(row, message), numbers=len(row))

    assert same(found, row)
    assert (behind.payload.tolist(), behind.bits) == (list(payload), message.bits)
