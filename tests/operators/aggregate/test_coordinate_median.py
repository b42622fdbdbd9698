"""The median of the workers: a scalar oracle, and honest values around it."""

import statistics

import pytest
import torch

from operators import CoordinateMedian, Key


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_merge_equals_the_scalar_oracle(n):
    xs = torch.randn(n, 9, generator=torch.Generator().manual_seed(n))
    want = [float(torch.tensor(statistics.median(c))) for c in zip(*xs.tolist(), strict=True)]
    assert CoordinateMedian().round(list(xs), keys=[Key(0, rank=r) for r in range(n)]).tolist() == want


def test_result_lies_between_honest_values_while_fewer_than_half_are_faulty():
    honest = 5 + torch.randn(4, 30, generator=torch.Generator().manual_seed(0))  # a sum of two lies beyond them
    xs = [*honest, *torch.full((3, 30), 1e30)]
    median = CoordinateMedian().round(xs, keys=[Key(0, rank=r) for r in range(7)])
    assert ((honest.min(0).values <= median) & (median <= honest.max(0).values)).all()


@pytest.mark.parametrize("n", [2, 3, 4, 11])
def test_median_of_equal_vectors_is_the_vector(n):
    x = torch.randn(9, generator=torch.Generator().manual_seed(n))
    assert torch.equal(CoordinateMedian().round([x] * n, keys=[Key(0, rank=r) for r in range(n)]), x)
