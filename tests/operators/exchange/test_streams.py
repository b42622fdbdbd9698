"""Means of ranks in batches: the same bits as rank by rank, wherever batches end, and errors that the laws predict."""

import math
import tracemalloc

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.theorems import gather_error, two_shot_exact_error
from operators import Key, RandomK, all_operators, parse, specification
from operators.exchange import in_process, mean_of_ranks, mean_of_shard, mean_of_stream
from operators.exchange.choice import shards
from operators.feedback.memoryless import Memoryless
from tests.pooled import pooled

TEXTS = tuple(specification(cls.examples()[0]) for cls in all_operators().values())
FAST = ("scaled_sign", "qsgd:16", "qsgd:4,code=fixed", "terngrad", "randomk:0.2", "topk:0.2")


def vectors(m, d, seed=0):
    return torch.randn(m, d, generator=torch.Generator().manual_seed(seed))


@pooled("text", TEXTS)
def test_batches_change_no_bit_of_the_mean(text):
    """A method with memory, even without any, exchanges message by message."""
    for m, d in ((1, 5), (3, 2), (5, 23)):
        for exchange in ("gather", "two_shot"):
            xs, operator, key = list(vectors(m, d)), parse(text), Key(4, step=3).fold_in(2)
            at_once = mean_of_ranks(xs, operator, exchange=exchange, key=key)
            one_by_one = mean_of_ranks(xs, Memoryless(operator), exchange=exchange, key=key)
            assert torch.equal(at_once.mean, one_by_one.mean)
            assert at_once.mean.dtype == one_by_one.mean.dtype
            assert at_once.sent_bits == one_by_one.sent_bits


@pooled("text", FAST)
@given(m=st.integers(1, 12), d=st.integers(1, 40), cuts=st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=max(3, settings().max_examples // 20), deadline=None)
def test_a_stream_may_be_cut_anywhere(text, m, d, cuts):
    x, operator, key = vectors(m, d, 1), parse(text), Key(7, step=1)

    def batches(matrix):
        start, turn = 0, 0
        while start < m:
            yield matrix[start : start + cuts[turn % len(cuts)]]
            start, turn = start + cuts[turn % len(cuts)], turn + 1

    whole = mean_of_ranks(list(x), operator, exchange="gather", key=key)
    streamed = mean_of_stream(batches(x), operator, key=key)
    assert torch.equal(streamed.mean, whole.mean)
    assert (streamed.m, streamed.sent_bits) == (m, sum(whole.sent_bits))

    shots = mean_of_ranks(list(x), operator, key=key)
    parts = [
        mean_of_shard(batches(x[:, cut]), operator, shard=j, key=key)
        for j, cut in enumerate(shards(d, m))
        if cut.stop > cut.start
    ]
    assert torch.equal(torch.cat([part.mean for part in parts]), shots.mean)
    assert sum(part.sent_bits for part in parts) == sum(shots.sent_bits)


def test_batches_of_several_calls_are_one_mean(monkeypatch):
    x, key = vectors(9, 10), Key(1)
    expected = mean_of_ranks(list(x), parse("qsgd:4"), key=key)
    gathered = mean_of_ranks(list(x), parse("qsgd:4"), exchange="gather", key=key)
    monkeypatch.setattr(in_process, "BATCH", 3)
    again = mean_of_ranks(list(x), parse("qsgd:4"), key=key)
    assert torch.equal(again.mean, expected.mean)
    assert again.sent_bits == expected.sent_bits
    assert torch.equal(mean_of_stream([x], parse("qsgd:4"), key=key).mean, gathered.mean)


def test_streams_without_vectors_or_of_unequal_ones_are_refused():
    operator, key = parse("scaled_sign"), Key(0)
    with pytest.raises(ValueError, match="at least one vector"):
        mean_of_stream([], operator, key=key)
    with pytest.raises(ValueError, match="d = 3"):
        mean_of_stream([torch.ones(2, 3), torch.ones(2, 4)], operator, key=key)
    with pytest.raises(ValueError, match="owner below m = 2"):
        mean_of_shard([torch.ones(2, 3)], operator, shard=2, key=key)


def test_memory_of_a_stream_is_that_of_a_batch():
    x = vectors(1000, 64)
    mean_of_stream([x], parse("qsgd:16"), key=Key(0))  # the loops are compiled
    peaks = []
    for batches in (2, 20):
        tracemalloc.start()
        mean_of_stream((x for _ in range(batches)), parse("qsgd:16"), key=Key(0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
def test_error_of_a_thousand_workers_is_that_of_the_law(exchange):
    """Random-k has omega = d/k - 1 exactly; the error of a mean over draws lies within four standard errors."""
    m, d, draws = 1000, 4 if exchange == "gather" else 4000, 250 if exchange == "gather" else 1
    operator, x = RandomK(fraction=0.5), vectors(m, d)

    def mean_by(x, operator, key):
        return mean_of_stream([x], operator, key=key) if exchange == "gather" else mean_of_ranks(x, operator, key=key)

    omega, mean = 1.0, x.double().mean(0)
    squares = {"mean_square": float(x.double().square().sum()) / m, "m": m}
    if exchange == "gather":
        law = float(gather_error(omega=omega, **squares))
    else:
        square = float(mean.square().sum())
        law = float(two_shot_exact_error(omega1=omega, omega2=omega, square_of_mean=square, **squares))
    means = [mean_by(x, operator, key=Key(5, step=t)).mean for t in range(draws)]
    errors = (torch.stack(means) - mean).double().square().reshape(-1, 4).sum(1)  # of a shard, or of a draw
    total = errors.mean() * (d / 4)
    standard_error = errors.std() * (d / 4) / math.sqrt(errors.numel())
    assert abs(total - law) < 4 * standard_error
    assert standard_error < 0.1 * law
