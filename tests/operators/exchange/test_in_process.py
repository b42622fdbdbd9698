"""The mean of m vectors in one process, by either exchange."""

import numpy as np
import pytest
import torch

from operators import QSGD, ErrorFeedback, Key, ScaledSign
from operators.exchange import mean_of_ranks


def test_gather_is_the_mean_of_the_decoded_vectors_in_float64():
    xs, operator = [torch.randn(9, generator=torch.Generator().manual_seed(r)) for r in range(3)], QSGD(levels=4)
    result = mean_of_ranks(xs, operator, exchange="gather", key=Key(4, step=2))

    decoded = [operator(x.numpy(), key=Key(4, step=2, rank=rank)).astype(np.float64) for rank, x in enumerate(xs)]
    np.testing.assert_array_equal(result.mean.numpy(), (decoded[0] + decoded[1] + decoded[2]) / 3)


def test_bits_sent_by_hand():
    """32 + d bits a message: to 2 others each 42 whole; or shards of 3, 3 and 4, and means of them."""
    xs = [torch.ones(10)] * 3

    assert mean_of_ranks(xs, ScaledSign(), exchange="gather", key=Key(0)).sent_bits == (84,) * 3
    two_shot = mean_of_ranks(xs, ScaledSign(), exchange="two_shot", key=Key(0))
    assert two_shot.sent_bits == (35 + 36 + 2 * 35, 35 + 36 + 2 * 35, 35 + 35 + 2 * 36)


def test_auto_takes_what_is_cheaper():
    xs = [torch.ones(4000)] * 4
    assert mean_of_ranks(xs, ScaledSign(), exchange="auto", key=Key(0)).exchange == "two_shot"
    assert mean_of_ranks(xs[:2], ScaledSign(), exchange="auto", key=Key(0)).exchange == "gather"


def test_feedback_starts_without_memory():
    xs = [torch.arange(1.0, 9.0), -torch.arange(1.0, 9.0) / 3]
    plain = mean_of_ranks(xs, ScaledSign(), key=Key(0))
    assert torch.equal(mean_of_ranks(xs, ErrorFeedback(ScaledSign()), key=Key(0)).mean, plain.mean)


@pytest.mark.parametrize("xs", [[], [torch.ones(3), torch.ones(4)]])
def test_vectors_of_different_lengths_and_none_are_refused(xs):
    with pytest.raises(ValueError, match="vectors must be at least one, and equally long"):
        mean_of_ranks(xs, ScaledSign(), key=Key(0))
