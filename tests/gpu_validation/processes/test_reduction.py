"""Compiled means are those of plain float64 arithmetic, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpu_validation.processes.reduction import PIECE, fold, mean_of_arrays
from tests.pooled import pooled


def plain(parts, dtype):
    """One entry after the other, in Python floats."""
    return np.array(
        [sum(map(float, column[1:]), float(column[0])) / len(column) for column in zip(*parts, strict=True)], dtype
    )


@pytest.mark.parametrize("n", [0, 1, 7, PIECE, PIECE + 1, 2 * PIECE + 3])
@pooled("m", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_is_the_plain_one_at_every_length(n, m, dtype):
    rng = np.random.default_rng(n + m)
    parts = [(rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)).astype(dtype) for _ in range(m)]
    out = np.empty(n, dtype)

    mean_of_arrays(parts, out)

    np.testing.assert_array_equal(out, plain(parts, dtype))


@given(st.integers(2, 4).flatmap(lambda m: arrays(np.float32, (m, 5), elements=st.floats(width=32))))
def test_mean_of_any_numbers_is_that_of_tensors_in_float64(rows):
    out = np.empty(5, np.float32)

    mean_of_arrays(list(rows), out)

    wide = torch.from_numpy(rows).double()
    total = wide[0].clone()
    for row in wide[1:]:
        total += row
    np.testing.assert_array_equal(out, (total / len(rows)).float().numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_tensors_of_every_dtype_fold_alike(dtype, m):
    parts = [torch.randn(100, generator=torch.Generator().manual_seed(i)).to(dtype) for i in range(m)]
    strided = [torch.stack([part, part], dim=1)[:, 0] for part in parts]

    found = fold(parts)

    total = parts[0].double()
    for part in parts[1:]:
        total = total + part
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.equal(found, (total / m).to(found.dtype))
    assert torch.equal(fold(strided), found)
