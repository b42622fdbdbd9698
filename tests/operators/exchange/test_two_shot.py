"""Two shots against their definition: whose key, whose shard, what all ranks use, and what both ends remember."""

import itertools

import numpy as np
import pytest
import torch

from bounds.theorems import gather_error, two_shot_exact_error
from operators import (
    EF21,
    QSGD,
    TCDQ,
    CorruptMessage,
    ErrorFeedback,
    Identity,
    Key,
    Message,
    RandomK,
    ScaledSign,
    TopK,
)
from operators.exchange import TwoShot, mean_of_ranks
from operators.exchange.channel import FROM_OWNER, GATHERED, TO_OWNER, Channel, stage_key
from operators.exchange.two_shot import from_owners, merge, to_owners
from operators.feedback.memoryless import Memoryless
from operators.random import bits32, normal

KEY = Key(3, step=5, layer=2, path=(7,))


def vectors(m, d, step=0):
    return [torch.from_numpy(normal(Key(11, step=step, rank=rank), d).astype(np.float32)) for rank in range(m)]


def by_hand(xs, first, second):
    """The definition, shard by shard; an operator's round trip is all it needs."""
    m, d, result = len(xs), xs[0].numel(), []
    for owner in range(m):
        a, b = owner * d // m, (owner + 1) * d // m
        if a == b:
            continue
        total = np.zeros(b - a)
        for rank, x in enumerate(xs):
            key = Key(3, step=5, rank=rank, layer=2, path=(7, 1, owner))
            total += first(x[a:b].numpy(), key=key).astype(np.float64)
        mean = (total / m).astype(np.float32)
        result.append(second(mean, key=Key(3, step=5, rank=owner, layer=2, path=(7, 2, owner))))
    return np.concatenate(result)


@pytest.mark.parametrize(("m", "d"), [(1, 5), (2, 9), (3, 10), (4, 64), (4, 3), (5, 1)])
@pytest.mark.parametrize("second", [None, QSGD(levels=64), TopK(fraction=0.5)], ids=repr)
@pytest.mark.parametrize("first", [QSGD(levels=4), TCDQ(omega=0.5), RandomK(fraction=0.5)], ids=repr)
def test_mean_is_that_of_the_definition(first, second, m, d):
    xs = vectors(m, d)

    in_batches = mean_of_ranks(xs, first, second=second, key=KEY)
    message_by_message = mean_of_ranks(xs, Memoryless(first), second=second, key=KEY)

    np.testing.assert_array_equal(in_batches.mean.numpy(), by_hand(xs, first, second or first))
    np.testing.assert_array_equal(message_by_message.mean.numpy(), in_batches.mean.numpy())


@pytest.mark.parametrize("m", [2, 3, 4])
def test_all_ranks_hold_the_same_bits(m):
    xs, d = vectors(m, 10), 10
    ranks = [TwoShot(QSGD(levels=4), TCDQ(), KEY, rank=rank, m=m, d=d) for rank in range(m)]
    sent = [rank.encode(x, 0) for rank, x in zip(ranks, xs, strict=True)]
    means = [owner.merge({i: sent[i][j] for i in range(m)}, range(m), 0) for j, owner in enumerate(ranks)]

    first, *others = [rank.mean(means, 0) for rank in ranks]

    assert all(torch.equal(first, other) for other in others)


def test_every_message_of_a_run_has_a_stream_of_its_own():
    m = 4
    addresses = itertools.product((TO_OWNER, FROM_OWNER), range(m), range(3), range(m))
    keys = [stage_key(KEY, stage, shard, step=step, rank=rank) for stage, shard, step, rank in addresses]
    keys += [stage_key(KEY, GATHERED, 0, step=step, rank=rank) for step in range(3) for rank in range(m)]

    assert len({tuple(bits32(key, 4).tolist()) for key in keys}) == len(keys)


def test_the_two_stages_err_independently():
    """One stream for both would square the owner's rounding: here the products of both errors average to zero."""
    m, d, operator = 2, 20_000, QSGD(levels=1)
    xs = [torch.ones(d), torch.ones(d)]
    rank = TwoShot(operator, operator, KEY, rank=0, m=m, d=d)
    first = rank.receivers[0].decode(rank.encode(xs[0], 0)[0], 0).numpy()
    second = rank.means[0].decode(rank.owner.encode(xs[0][: d // 2], 0), 0).numpy()

    errors = (first - 1) * (second - 1)
    assert abs(errors.mean()) < 5 * errors.std() / np.sqrt(errors.size)


@pytest.mark.parametrize(
    "operator",
    [QSGD(levels=2), pytest.param(TCDQ(omega=1.0), marks=pytest.mark.thorough), RandomK(fraction=0.25)],
    ids=repr,
)
def test_mean_is_unbiased(operator):
    xs, n = vectors(3, 10), 600
    exact = torch.stack(xs).double().mean(dim=0)
    results = torch.stack([mean_of_ranks(xs, operator, key=Key(9, step=k)).mean.double() for k in range(n)])

    away = (results.mean(dim=0) - exact) / (results.std(dim=0) / n**0.5)
    assert away.abs().max() < 5  # of ten coordinates


def test_eight_ranks_send_3_17_bits_a_coordinate_and_err_by_the_law():
    m, d = 8, 400_000
    xs = vectors(m, d)
    exact = torch.stack(xs).double().mean(dim=0)
    result = mean_of_ranks(xs, TCDQ(omega=0.1), key=KEY)

    nmse = float((result.mean.double() - exact).square().sum() / exact.square().sum())
    assert nmse == pytest.approx(0.210, abs=0.002)
    headers = 8 * (m - 1) * (32 + 8) / d
    assert max(result.sent_bits) / d + headers == pytest.approx(3.17, abs=0.005)


def energies(xs):
    S = float(torch.stack(xs).double().square().sum(dim=1).mean())
    return {"mean_square": S, "square_of_mean": float(torch.stack(xs).double().mean(dim=0).square().sum())}


@pytest.mark.thorough
def test_sixteen_ranks_at_eight_wire_bits_err_by_less_than_6e_3_where_gather_has_0_91():
    m, d, operator = 16, 1 << 19, TCDQ(omega=0.00294, states=64)
    xs = vectors(m, d)
    exact = torch.stack(xs).double().mean(dim=0)
    result = mean_of_ranks(xs, operator, key=KEY)

    assert max(result.sent_bits) / d + 8 * (m - 1) * (32 + 8) / d <= 8
    assert float((result.mean.double() - exact).square().sum() / exact.square().sum()) <= 0.006
    # what 8/15 bits allow an unbiased code: 1/(4^(8/15) - 1) of the energy of each rank
    gathered = gather_error(omega=1 / (4 ** (8 / 15) - 1), m=m, mean_square=energies(xs)["mean_square"])
    assert gathered / energies(xs)["square_of_mean"] == pytest.approx(0.91, abs=0.01)


@pytest.mark.thorough
def test_sixty_four_ranks_err_within_one_per_cent_of_the_law():
    m, d, operator = 64, 64 * 2048, TCDQ(omega=0.1)
    xs = vectors(m, d)
    result = mean_of_ranks(xs, operator, key=KEY)

    error2 = float((result.mean.double() - torch.stack(xs).double().mean(dim=0)).square().sum())
    assert error2 == pytest.approx(two_shot_exact_error(omega1=0.1, omega2=0.1, m=m, **energies(xs)), rel=0.01)


def run(first, second, steps=6, m=3, d=10):
    """All results, all inputs' means, and the ranks."""
    ranks = [TwoShot(first, second, KEY, rank=rank, m=m, d=d) for rank in range(m)]
    results, exact = [], []
    for step in range(steps):
        xs = vectors(m, d, step)
        sent = [rank.encode(x, step) for rank, x in zip(ranks, xs, strict=True)]
        means = [owner.merge({i: sent[i][j] for i in range(m)}, range(m), step) for j, owner in enumerate(ranks)]
        results.append(ranks[0].mean(means, step).double())
        exact.append(torch.stack(xs).double().mean(dim=0))
    return sum(results), sum(exact), ranks


@pytest.mark.parametrize("operator", [ScaledSign(), TopK(fraction=0.3)], ids=repr)
def test_with_feedback_at_both_ends_nothing_is_lost(operator):
    feedback = ErrorFeedback(operator)
    sent, exact, ranks = run(feedback, feedback)

    of_workers = sum(torch.cat([end.state["residual"] for end in rank.senders]).double() for rank in ranks) / len(ranks)
    of_owners = torch.cat([rank.owner.state["residual"] for rank in ranks]).double()
    torch.testing.assert_close(sent + of_workers + of_owners, exact, rtol=0, atol=1e-5)
    assert of_owners.abs().max() > 0.1
    assert of_workers.abs().max() > 0.1


def test_without_the_owners_residual_what_the_second_shot_leaves_out_is_lost():
    sent, exact, ranks = run(ErrorFeedback(ScaledSign()), ScaledSign())
    of_workers = sum(torch.cat([end.state["residual"] for end in rank.senders]).double() for rank in ranks) / len(ranks)
    assert (sent + of_workers - exact).abs().max() > 0.1


@pytest.mark.parametrize("method", [ErrorFeedback(TopK(fraction=0.3)), EF21(TopK(fraction=0.3))], ids=repr)
def test_a_restored_state_continues_exactly(method):
    def steps(ranks, first, last):
        results = []
        for step in range(first, last):
            xs = vectors(3, 10, step)
            sent = [rank.encode(x, step) for rank, x in zip(ranks, xs, strict=True)]
            means = [owner.merge({i: sent[i][j] for i in range(3)}, range(3), step) for j, owner in enumerate(ranks)]
            results += [rank.mean(means, step) for rank in ranks]
        return torch.stack(results)

    def fresh():
        return [TwoShot(method, method, KEY, rank=rank, m=3, d=10) for rank in range(3)]

    straight = steps(fresh(), 0, 6)
    before, after = fresh(), fresh()
    first = steps(before, 0, 3)
    for old, new in zip(before, after, strict=True):
        new.state = old.state
    assert torch.equal(torch.cat([first, steps(after, 3, 6)]), straight)
    assert not torch.equal(steps(fresh(), 3, 6), straight[9:]), "the memory must matter"


def test_only_members_count_and_ranks_that_are_none_still_own_shards():
    xs, m = vectors(3, 9), 3
    ranks = [TwoShot(QSGD(levels=4), Identity(), KEY, rank=rank, m=m, d=9) for rank in range(m)]
    sent = [rank.encode(x, 0) for rank, x in zip(ranks, xs, strict=True)]
    means = [owner.merge({0: sent[0][j], 2: sent[2][j]}, (0, 2), 0) for j, owner in enumerate(ranks)]

    decoded = [torch.cat([ranks[j].receivers[i].decode(sent[i][j], 0) for j in range(m)]) for i in (0, 2)]
    torch.testing.assert_close(ranks[1].mean(means, 0), (decoded[0] + decoded[1]) / 2)


def test_a_damaged_message_names_who_sent_it():
    m, d = 2, 8
    ranks = [TwoShot(ScaledSign(), ScaledSign(), KEY, rank=rank, m=m, d=d) for rank in range(m)]
    sent = [rank.encode(x, 0) for rank, x in zip(ranks, vectors(m, d), strict=True)]
    short = Message(sent[1][0].payload[:-1], sent[1][0].bits - 8)

    with pytest.raises(CorruptMessage, match="the shard that rank 1 sent is damaged"):
        ranks[0].merge({0: sent[0][0], 1: short}, range(m), 0)
    mean = ranks[0].merge({0: sent[0][0], 1: sent[1][0]}, range(m), 0)
    with pytest.raises(CorruptMessage, match="the mean that rank 1 sent is damaged"):
        ranks[0].mean([mean, short], 0)


class OnMeta:
    """An end whose vectors and messages lie on a device without memory, from which nothing can be copied."""

    d = 3

    def __init__(self):
        self.seen = []

    def encode(self, x, step):
        self.seen.append((x.device.type, x.dtype, tuple(x.shape)))
        return Message(torch.empty(12, dtype=torch.uint8, device="meta"), 96)

    def decode(self, message, step):
        return torch.empty(3, device=message.payload.device)


def test_nothing_leaves_the_device_on_which_the_messages_lie():
    """A shard without entries is decoded to an empty vector on the CPU, and does no harm."""
    ends, out = [OnMeta(), OnMeta()], OnMeta()

    sent = to_owners(ends, torch.empty(6, device="meta"), 0)
    merged = merge(ends, out, dict(enumerate(sent)), range(2), 0)
    empty = Channel(Identity(), KEY, stage=2, rank=2, shard=2, d=0, receives=True)
    mean = from_owners([*ends, empty], [merged, merged, Message(torch.empty(0, dtype=torch.uint8), 0)], 0)

    assert [end.seen for end in (*ends, out)] == [[("meta", torch.float32, (3,))]] * 3
    assert (mean.device.type, mean.dtype, tuple(mean.shape)) == ("meta", torch.float32, (6,))
