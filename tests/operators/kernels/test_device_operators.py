"""Operators that work on any device give the same message and vector on every back end."""

import numpy as np
import pytest
import torch

from operators import Key, all_operators
from operators.kernels.backend import kernels_for, use
from operators.operator import DeviceOperator

from .equality import INTERPRETED, OTHERS, SIZES, assert_equal

EXAMPLES = [op for cls in all_operators().values() if issubclass(cls, DeviceOperator) for op in cls.examples()]


@pytest.mark.parametrize("operator", EXAMPLES, ids=repr)
@pytest.mark.parametrize("other", OTHERS)
def test_message_and_vector_do_not_depend_on_the_back_end(other, operator):
    device = "cuda" if other == "cuda" and not INTERPRETED else "cpu"
    for d in SIZES[:4] if INTERPRETED else SIZES:  # the interpreter is slow
        x, key = torch.from_numpy(np.random.default_rng(d).standard_normal(d).astype(np.float32)), Key(d)
        here = operator.encode(x, key=key)
        with use(other):
            there = operator.encode(x.to(device), key=key)
            back = operator.decode(there, d=d, key=key)
        assert there.bits == here.bits
        assert there.payload.device.type == back.device.type == device
        assert_equal(here.payload, there.payload.cpu())
        assert_equal(operator.decode(here, d=d, key=key), back.cpu())


def test_the_device_chooses_and_a_forced_choice_ends_with_its_block():
    x = torch.zeros(1)
    assert kernels_for(x).backend == "cpu"
    with use("reference"):
        assert kernels_for(x).backend == "reference"
    assert kernels_for(x).backend == "cpu"
    assert kernels_for(torch.zeros(1, device="meta")).backend == "reference"
    with pytest.raises(ValueError, match="got 'gpu'"), use("gpu"):
        pass
