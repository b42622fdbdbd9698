"""The vote by summation: that of the server, in words of ceil(log2(m + 1)) bits."""

import math

import pytest
import torch

from operators import Key, MajorityVote
from operators.summed import SignVote, sum_of_ranks, summed


@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 8, 16])
def test_vote_is_that_of_a_server_and_words_are_as_short_as_can_be(m):
    vectors = list(torch.randn(m, 33, generator=torch.Generator().manual_seed(m)))
    vectors[0][:3] = torch.tensor([0.0, -0.0, 1e-30])

    result = sum_of_ranks(vectors, SignVote(), key=Key(0))

    server = MajorityVote().round(vectors, keys=[Key(0, rank=rank) for rank in range(m)])
    assert torch.equal(result.mean, server)
    assert SignVote().bits(33, m) == math.ceil(math.log2(m + 1)) * 33


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("m", [1, 2, 4, 8, 255, 256])
def test_votes_of_one_accord_do_not_wrap_round(m, sign):
    assert (sum_of_ranks([sign * torch.ones(2)] * m, SignVote(), key=Key(0)).mean == sign).all()


def test_a_word_with_a_bit_less_wraps_round():
    class Short(SignVote):
        def rounds(self, state, x, **settings):
            rounds = super().rounds(state, x, **settings)
            (votes,) = next(rounds)
            total = yield (summed.Words(votes.values, votes.bits - 1),)
            try:
                rounds.send(total)
            except StopIteration as stop:
                return stop.value

    assert (sum_of_ranks([torch.ones(2)] * 4, Short(), key=Key(0)).mean == -1).all()


def test_a_sign_promises_nothing_about_lengths():
    assert "lengths" in SignVote().claim_mean(5, 2).reason
