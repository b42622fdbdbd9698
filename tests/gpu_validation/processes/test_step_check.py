import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.processes.reduction import fold
from gpu_validation.processes.step_check import UnevenSteps, encode, require

DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
COUNTS = st.integers(0, 2**32 - 1)


def averaged(counts, dtype):
    return fold([encode(count).to(dtype) for count in counts])


@given(COUNTS, st.integers(1, 300), st.sampled_from(DTYPES))
def test_equal_counts_pass_for_any_number_of_ranks(count, m, dtype):
    require(averaged([count] * m, dtype), count)


@given(st.lists(COUNTS, min_size=2, max_size=40).filter(lambda counts: len(set(counts)) > 1), st.sampled_from(DTYPES))
def test_unequal_counts_are_seen_by_every_rank(counts, dtype):
    for count in counts:
        with pytest.raises(UnevenSteps, match=f"this rank has made {count} local steps, those it averages"):
            require(averaged(counts, dtype), count)


def test_one_rank_out_of_step_is_seen_among_thousands():
    parts = encode(1000).expand(9999, -1).double().sum(dim=0) + encode(1001)

    for count in (1000, 1001):
        with pytest.raises(UnevenSteps):
            require((parts / 10_000).float(), count)


def test_a_rank_whose_count_is_not_among_the_averaged_sees_it_too():
    with pytest.raises(UnevenSteps, match="7 local steps, those it averages with 8 on average: every rank must"):
        require(averaged([8, 8], torch.float32), 7)
