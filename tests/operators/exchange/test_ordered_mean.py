"""Means in order are those of plain float64 arithmetic, bit for bit, signs of zeros included."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from operators.exchange.ordered_mean import ordered_mean, plain_mean


def in_python(rows):
    """One entry after the other, in Python floats."""
    means = []
    for column in zip(*rows, strict=True):
        total = 0.0
        for entry in column:
            total += float(entry)
        means.append(total / len(column))
    return means


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@given(st.integers(1, 6).flatmap(lambda m: arrays(np.float32, (m, 5), elements=st.floats(width=32, allow_nan=False))))
def test_mean_is_that_of_python_floats(dtype, rows):
    vectors = [torch.from_numpy(row.copy()) for row in rows]
    expected = torch.tensor(in_python(rows), dtype=torch.float64).to(dtype).numpy()

    for mean in (ordered_mean, plain_mean):
        found = mean(iter(vectors), dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected)
        np.testing.assert_array_equal(np.signbit(found.numpy()), np.signbit(expected))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_vectors_are_not_written_to_and_negative_zeros_become_positive(m, dtype):
    vectors = [torch.full((3,), -0.0) for _ in range(m)]
    vectors[0][0] = 1.0

    found = ordered_mean(vectors, dtype)

    assert found.tolist() == pytest.approx([1 / m, 0.0, 0.0], rel=1e-7)
    assert [math.copysign(1, entry) for entry in found.tolist()] == [1, 1, 1]
    assert [v.tolist() for v in vectors] == [[1.0, 0, 0], *[[0, 0, 0]] * (m - 1)]


def test_the_order_counts():
    parts = [torch.tensor([x]) for x in (1.0, 2.0**60, -(2.0**60))]
    assert ordered_mean(parts).item() == 0.0
    assert ordered_mean(parts[::-1]).item() == 1 / 3


def test_vectors_with_gaps_in_memory_and_of_other_dtypes_count_alike():
    rows = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    strided = [torch.stack([row, row], dim=1)[:, 0] for row in rows]
    assert torch.equal(ordered_mean(strided), ordered_mean(rows))
    assert torch.equal(ordered_mean(rows.double()), ordered_mean(rows))
