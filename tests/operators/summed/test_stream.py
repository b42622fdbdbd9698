"""Sums of ranks in batches: the bits of the sums of single ranks, and the error of the law."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import Key
from operators.exchange import in_process
from operators.summed import SharedScale, SignVote, sum_of_ranks, sum_of_stream

METHODS = (*SharedScale.examples(), *SignVote.examples())


@given(
    method=st.sampled_from(METHODS),
    m=st.integers(1, 16),
    d=st.integers(1, 70),
    batch=st.integers(1, 20),
    coordinates=st.integers(1, 300),
)
def test_batches_change_no_bit_of_a_sum(method, m, d, batch, coordinates):
    x = torch.randn(m, d, generator=torch.Generator().manual_seed(m + d))
    x[0, 0] = -0.0
    whole = sum_of_ranks(list(x), method, key=Key(3, step=2))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_process, "BATCH", coordinates)
        streamed = sum_of_stream(lambda: x.split(batch), method, m=m, key=Key(3, step=2))

    assert torch.equal(streamed.mean, whole.mean)
    assert (streamed.m, streamed.sent_bits) == (m, sum(whole.sent_bits))


def test_another_number_of_vectors_is_refused():
    with pytest.raises(ValueError, match="m = 3"):
        sum_of_stream(lambda: [torch.ones(2, 4)], SignVote(), m=3, key=Key(0))


def test_error_of_many_ranks_is_the_exact_one():
    m, d, draws = 2000, 50, 40
    x, method = torch.randn(m, d, generator=torch.Generator().manual_seed(0)), SharedScale(word_bits=14)
    means = [sum_of_stream(lambda: [x], method, m=m, key=Key(1, step=t)).mean.double() for t in range(draws)]
    squares = (torch.stack(means) - x.double().mean(0)).square().sum(1).numpy()
    assert abs(squares.mean() - method.square_error(list(x.numpy()))) < 4 * squares.std() / np.sqrt(draws)
