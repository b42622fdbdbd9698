import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpu_validation.processes.reduction import PIECE, _fold_plainly, fold, precision

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def oracle(parts):
    """Plain Python."""
    found = []
    for column in zip(*(part.double().tolist() for part in parts), strict=True):
        total = 0.0
        for value in column:
            total += value
        found.append(total / len(column))
    return torch.tensor(found, dtype=torch.float64).to(precision(parts[0].dtype))


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(0, 9)), elements=st.floats(-6e4, 6e4)),
    st.sampled_from(DTYPES),
)
def test_mean_is_the_sum_in_rank_order_in_float64(values, dtype):
    parts = [torch.from_numpy(row).to(dtype) for row in values]

    found = fold(parts)

    assert found.dtype == precision(dtype)
    assert torch.equal(found, oracle(parts))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n", [PIECE - 1, PIECE, 2 * PIECE + 3])
def test_compiled_and_plain_paths_give_the_same_bits_in_any_pieces(n, dtype):
    rng = np.random.default_rng(n)
    scale = 10.0 ** rng.integers(-12, 12, (3, n))
    parts = [torch.from_numpy(row).to(dtype) for row in scale * rng.standard_normal((3, n))]
    plain = torch.empty(n, dtype=dtype)

    _fold_plainly(parts, plain)
    found, pieces = fold(parts), torch.empty(n, dtype=dtype)
    for here in (slice(0, 17), slice(17, n)):
        fold([part[here] for part in parts], out=pieces[here])

    assert torch.equal(found, plain)
    assert torch.equal(pieces, plain)


def test_a_vector_that_is_not_finite_stays_visible():
    found = fold([torch.tensor([1.0, float("inf"), float("nan")]), torch.tensor([2.0, 1.0, 1.0])])

    assert str(found.tolist()) == "[1.5, inf, nan]"
