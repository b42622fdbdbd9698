"""The trimmed mean: a scalar oracle, and honest values around it."""

import math

import pytest
import torch

from operators import Key, Mean, TrimmedMean
from operators.compressors.identity import Identity


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.3, 0.49])
def test_merge_equals_the_scalar_oracle(n, fraction):
    xs = torch.randn(n, 9, generator=torch.Generator().manual_seed(n))
    b = min(math.ceil(fraction * n), (n - 1) // 2)
    want = [math.fsum(sorted(c)[b : n - b]) / (n - 2 * b) for c in zip(*xs.tolist(), strict=True)]
    found = TrimmedMean(fraction).round(list(xs), keys=[Key(0, rank=r) for r in range(n)])
    assert found.tolist() == pytest.approx(want, rel=1e-6)


def test_result_lies_between_honest_values_while_no_more_than_b_are_faulty():
    honest = 5 + torch.randn(7, 30, generator=torch.Generator().manual_seed(0))  # a sum of two lies beyond them
    xs = [*honest, *torch.full((3, 30), -1e30)]
    found = TrimmedMean(0.3).round(xs, keys=[Key(0, rank=r) for r in range(10)])
    assert ((honest.min(0).values <= found) & (found <= honest.max(0).values)).all()


@pytest.mark.parametrize("n", [2, 3, 4, 11, 12])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.49])
def test_mean_of_equal_vectors_is_the_vector(n, fraction):
    x = torch.randn(9, generator=torch.Generator().manual_seed(n))
    assert torch.equal(TrimmedMean(fraction).round([x] * n, keys=[Key(0, rank=r) for r in range(n)]), x)


def test_nothing_trimmed_is_the_mean():
    xs, keys = list(torch.randn(4, 9, generator=torch.Generator().manual_seed(0))), [Key(0, rank=r) for r in range(4)]
    assert torch.allclose(TrimmedMean(0.0).round(xs, keys=keys), Mean(Identity()).round(xs, keys=keys), rtol=1e-6)


@pytest.mark.parametrize("fraction", [-0.1, 0.5])
def test_meaningless_parameter_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction must"):
        TrimmedMean(fraction)
