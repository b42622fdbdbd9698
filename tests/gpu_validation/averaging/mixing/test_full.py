import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.mixing import Full
from gpu_validation.averaging.simulated import InProcessTransport
from gpu_validation.processes.reduction import fold


def test_one_rank_keeps_its_model():
    x = torch.tensor([1.5, -2.0])

    (blended,) = Full().mix(InProcessTransport(1), [x], 0)

    assert torch.equal(blended, x)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=9))
def test_mean_is_the_sum_in_rank_order_in_float64(values):
    total = 0.0
    for value in values:
        total += value
    expected = np.float32(total / len(values))

    for found in Full().mix(InProcessTransport(len(values)), [torch.tensor([v]) for v in values], 0):
        assert found.dtype == torch.float32
        assert found.item() == expected


def test_equal_models_stay_as_they_are_in_any_number():
    x = torch.tensor([0.1, 1e-30, -3.4e38])

    for m in range(1, 40):
        assert torch.equal(fold([x] * m), x)


def test_halves_are_averaged_in_more_than_half_precision():
    big, small = torch.tensor([256.0], dtype=torch.bfloat16), torch.tensor([1.0], dtype=torch.bfloat16)

    assert fold([big, small, small, small]).item() == 259 / 4  # 256 + 1 is 256 in bfloat16
