"""The two ends of a compressed round: whose key, whose memory, and the mean of the members."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpu_validation.averaging.exchange.movements import Receiver, Sender
from operators import EF21, ErrorFeedback, Identity, Key, RandomK, TopK
from operators.random import normal

D, M = 12, 3
KEY = Key(3, layer=2, path=(7,))


def deltas(round_index):
    return [torch.from_numpy(normal(Key(5, step=round_index, rank=rank), D)).float() for rank in range(M)]


def ends(operator):
    senders = [Sender(operator, d=D) for _ in range(M)]
    return senders, Receiver(operator, m=M, d=D)


@pytest.mark.parametrize("members", [(0, 1, 2), (0, 2), (1,)])
def test_mean_is_that_of_the_members_decoded_with_the_key_of_round_and_rank(members):
    operator = RandomK(k=4)
    senders, receiver = ends(operator)
    for round_index in range(3):
        x, keys = deltas(round_index), KEY.of_ranks(range(M), step=round_index)
        messages = {rank: senders[rank].encode(x[rank], keys[rank]) for rank in range(M)}

        mean, kept = receiver.mean(messages, members, keys, keep=(1, 2))

        expected = [
            operator(x[rank], key=replace(KEY, step=round_index, rank=rank)).double().numpy() for rank in members
        ]
        total = np.zeros(D)
        for part in expected:
            total = total + part
        np.testing.assert_array_equal(mean, total / len(members))
        assert sorted(kept) == sorted({1, 2} & set(members))
        for rank, decoded in kept.items():
            np.testing.assert_array_equal(decoded, expected[members.index(rank)])


@pytest.mark.parametrize("feedback", [ErrorFeedback(TopK(k=3)), EF21(TopK(k=3))], ids=repr)
def test_memories_are_each_ranks_own_and_rest_while_it_does(feedback):
    senders, receiver = ends(feedback)
    state = {rank: (feedback.init(D), feedback.init_receiver(D)) for rank in range(M)}
    for round_index, members in enumerate([(0, 1, 2), (0, 2), (1, 2), (0, 1)]):
        x, keys = deltas(round_index), KEY.of_ranks(range(M), step=round_index)
        messages = {rank: senders[rank].encode(x[rank], keys[rank]) for rank in members}
        mean, _ = receiver.mean(messages, members, keys, keep=())

        total = np.zeros(D)
        for rank in members:
            key = replace(KEY, step=round_index, rank=rank)
            mine, theirs = state[rank]
            mine, message = feedback.encode(mine, x[rank], key=key)
            theirs, decoded = feedback.decode(theirs, message, d=D, key=key)
            state[rank] = mine, theirs
            total = total + decoded.double().numpy()
        np.testing.assert_array_equal(mean, total / len(members))


def test_float32_messages_are_added_in_float64():
    operator = Identity()
    senders, receiver = ends(operator)
    keys = KEY.of_ranks(range(M), step=0)
    x = [torch.full((D,), value) for value in (2.0**24, 1.0, 1.0)]
    messages = {rank: senders[rank].encode(x[rank], keys[rank]) for rank in range(M)}

    mean, _ = receiver.mean(messages, range(M), keys, keep=())

    assert mean[0] == (2.0**24 + 2) / 3  # in float32 the ones would vanish
