"""What all summed compressors have in common: bits, equal ranks, spectators, damaged messages, several vectors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Key, Message
from operators.summed import SharedScale, SignVote, SumEnd, SummedPowerSGD, Sums, sum_of_ranks
from operators.summed.end import Exchange
from operators.summed.summed import together

METHODS = [method for cls in (SharedScale, SignVote, SummedPowerSGD) for method in cls.examples()]


def some_vectors(m, d):
    return list(torch.randn(m, d, generator=torch.Generator().manual_seed(100 * m + d)))


def exchanged(ends, vectors, step, members=None):
    """One exchange by hand, some ranks looking on: the mean of every rank, and the bits that each has sent."""
    m, bits = len(ends), [0] * len(ends)
    members = list(range(m)) if members is None else members
    sent = {rank: ends[rank].encode(vectors[rank], step) for rank in members}
    for rank in set(range(m)) - set(members):
        ends[rank].follow(step)
    while not ends[0].exchange.over:
        merged = [
            end.exchange.merge({r: messages[o] for r, messages in sent.items()}, members) for o, end in enumerate(ends)
        ]
        for rank in members:
            bits[rank] += sum(message.bits for owner, message in enumerate(sent[rank]) if owner != rank)
            bits[rank] += (m - 1) * merged[rank].bits
        for end in ends:
            end.exchange.receive(merged, len(members))
        if not ends[0].exchange.over:
            sent = {rank: ends[rank].exchange.outgoing for rank in members}
    return [end.mean() for end in ends], tuple(bits)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(("m", "d"), [(1, 5), (2, 1), (3, 2), (4, 64), (5, 37), (8, 130)])
def test_all_ranks_end_with_the_bits_of_one_process_and_send_what_is_declared(method, m, d):
    vectors = some_vectors(m, d)
    ends = [SumEnd(method, Key(2), rank=rank, m=m, d=d) for rank in range(m)]

    means, bits = exchanged(ends, vectors, step=3)

    at_once = sum_of_ranks(vectors, method, key=Key(2, step=3))
    for mean in means:
        assert mean.dtype == np.float32
        assert mean.tobytes() == at_once.mean.numpy().tobytes()
    assert at_once.sent_bits == bits
    assert sum(bits) == 2 * (m - 1) * method.bits(d, m)
    exchange, widths = SumEnd(method, Key(2), rank=0, m=m, d=d).begin(vectors[0], 3), []
    while not exchange.over:
        widths.append(sum(terms.width * terms.values.size for terms in exchange.terms))
        exchange.advance(Sums(tuple(terms.values for terms in exchange.terms), 1))
    assert tuple(widths) == method.bits_of_rounds(d, m)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_spectators_read_the_sum_of_the_members_and_stay_in_step(method):
    vectors, members = some_vectors(4, 64), [0, 2, 3]
    ends = [SumEnd(method, Key(2), rank=rank, m=4, d=64) for rank in range(4)]

    first, _ = exchanged(ends, vectors, 0, members)
    second, _ = exchanged(ends, vectors, 1, range(4))

    assert all(mean.tobytes() == first[0].tobytes() for mean in first)
    assert all(mean.tobytes() == second[0].tobytes() for mean in second)
    if method == SharedScale(12, block=32):
        exact = torch.stack([vectors[rank] for rank in members]).mean(0).numpy()
        assert np.abs(first[1] - exact).max() < 0.01


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_vector_that_is_not_finite_is_refused(method):
    with pytest.raises(ValueError, match="finite"):
        sum_of_ranks([torch.ones(4), torch.tensor([0.0, torch.nan, 1, 1])], method, key=Key(0))


def test_a_message_of_another_length_is_told_with_its_sender():
    vectors = some_vectors(2, 9)
    ends = [SumEnd(SignVote(), Key(0), rank=rank, m=2, d=9) for rank in range(2)]
    sent = [end.encode(x, 0) for end, x in zip(ends, vectors, strict=True)]
    damaged = Message(torch.empty(0, dtype=torch.uint8), 0)

    with pytest.raises(CorruptMessage, match="the shard that rank 1 sent is damaged: the terms of a shard take 1"):
        ends[0].exchange.merge({0: sent[0][0], 1: damaged}, range(2))


def test_vectors_of_unlike_lengths_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        sum_of_ranks([torch.ones(2), torch.ones(3)], SignVote(), key=Key(0))


def test_several_vectors_go_through_the_rounds_side_by_side():
    """A matrix takes two rounds, a short vector one; each ends as it does alone."""
    m, sizes, method = 3, (64, 2, 130), SummedPowerSGD(1)
    vectors = [some_vectors(m, d) for d in sizes]

    def rounds(rank):
        return together(
            [
                method.rounds(
                    method.init(d), x[rank].numpy(), key=replace(Key(1).fold_in(d), rank=rank), m=m, member=True
                )
                for d, x in zip(sizes, vectors, strict=True)
            ]
        )

    ranks = [Exchange(rounds(rank), m=m, rank=rank) for rank in range(m)]
    while not ranks[0].over:
        sent = [rank.outgoing for rank in ranks]
        merged = [r.merge({s: messages[o] for s, messages in enumerate(sent)}, range(m)) for o, r in enumerate(ranks)]
        for rank in ranks:
            rank.receive(merged, m)

    for d, x, (_, mean) in zip(sizes, vectors, ranks[2].result, strict=True):
        assert mean.tobytes() == sum_of_ranks(x, method, key=Key(1).fold_in(d)).mean.numpy().tobytes()
