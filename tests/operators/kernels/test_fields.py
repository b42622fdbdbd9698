"""Fields of one width: equal bits everywhere, and against a text of zeros and ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.pooled import pooled

from .equality import FEW, OTHERS, SIZES, assert_equal, fields, run


def drawn(n, width, seed):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 1 << width, n).astype(np.int32))


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(st.sampled_from(SIZES), st.integers(1, 31), st.integers(0, 99))
def test_back_ends_agree(other, n, width, seed):
    values = drawn(n, width, seed)
    packed = run("cpu", fields.pack, values, width)
    assert_equal(packed, run(other, fields.pack, values, width))
    assert_equal(values, run("cpu", fields.unpack, packed, n, width))
    assert_equal(values, run(other, fields.unpack, packed, n, width))


@pooled("width", [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 30, 31])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100])
def test_fields_are_written_one_after_the_other(n, width):
    values = drawn(n, width, n)
    text = "".join(f"{v:0{width}b}" for v in values.tolist())
    packed = fields.pack(values, width)
    assert "".join(f"{b:08b}" for b in packed.tolist()) == text.ljust(8 * packed.numel(), "0")
    assert_equal(fields.unpack(packed, n, width), values)
