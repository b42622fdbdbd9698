"""The hook's thread: the backward pass goes on beside it, nothing is changed by it, and what fails in it is raised."""

import gc
import threading

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from operators import EF21, QSGD, ErrorFeedback, TopK
from operators.ddp import register
from operators.ddp.background import Background

from .test_hook import assert_same, counted, gradients_of, plain, reports

pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 20


# -- the thread ----------------------------------------------------------------------------------------------
def test_tasks_are_done_in_order_and_the_end_is_waited_for():
    background, done, leave = Background(), [], threading.Event()

    background.start(lambda: leave.wait(PATIENCE_S) and done.append(0))
    background.start(lambda: done.append(1))
    assert done == []
    leave.set()
    background.finish()

    assert done == [0, 1]


def test_after_a_failure_nothing_is_done_until_the_next_beginning():
    background, done = Background(), []

    background.start(lambda: 1 / 0)
    background.start(lambda: done.append("after it"))
    with pytest.raises(ZeroDivisionError):
        background.finish()
    background.start(lambda: [].pop())
    background.begin()  # of a pass whose end nobody has waited for
    background.start(lambda: done.append("anew"))
    background.finish()

    assert done == ["anew"]


def test_no_gradients_are_recorded_and_the_thread_ends_with_its_owner():
    background, seen = Background(), []
    background.start(lambda: seen.append(torch.is_grad_enabled()))
    background.finish()
    thread = background._thread

    del background
    gc.collect()
    thread.join(PATIENCE_S)

    assert seen == [False]
    assert not thread.is_alive()


# -- the hook ------------------------------------------------------------------------------------------------
class Chain(torch.nn.Module):
    """Three vectors, each in a bucket of its own; what is done when the pass has come to the first of them."""

    def __init__(self, at_the_first=lambda gradient: gradient):
        super().__init__()
        self.a, self.b, self.c = (torch.nn.Parameter(torch.linspace(-1, 2, 300 + i)) for i in range(3))
        self.at_the_first = at_the_first

    def forward(self, scale):
        first = (self.a * scale).sin().sum()
        if first.requires_grad:
            first.register_hook(self.at_the_first)
        return (first * self.b).sin().sum() * (self.c * scale).cos().sum()


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
@pytest.mark.parametrize("method", [QSGD(levels=4), EF21(TopK(fraction=0.1)), ErrorFeedback(TopK(fraction=0.1))])
def test_gradients_and_counts_are_those_of_a_pass_that_waits(method, exchange):
    def passes(place, waits):
        model = DistributedDataParallel(Chain(), bucket_cap_mb=0.001)
        hook = register(model, method, exchange=exchange)
        if waits:
            hook._background = None
        gradients = []
        for step in range(4):
            model.zero_grad()
            model(torch.tensor(1.0 + place.rank + step)).backward()
            gradients.append(plain(gradients_of(model)))
        return gradients, counted(hook)

    for waited, beside in reports(lambda place: (passes(place, True), passes(place, False))):
        assert_same(beside[0], waited[0])
        assert beside[1] == waited[1]
        assert all(np.abs(gradient).sum() > 0 for gradient in beside[0][-1].values())


def test_the_pass_goes_on_while_a_bucket_is_held_up():
    """It lets the exchange go when it has come to its end: a pass that waited would wait for ever."""

    def work(place):
        leave = threading.Event()
        model = DistributedDataParallel(Chain(lambda gradient: leave.set()), bucket_cap_mb=0.001)
        hook, held_up = register(model, QSGD(levels=4)), []
        exchange = hook._exchange

        def held(bucket):
            held_up.append(leave.wait(PATIENCE_S))
            return exchange(bucket)

        hook._exchange = held
        for _ in range(2):
            leave.clear()
            model(torch.tensor(1.0)).backward()
        return held_up

    first, second = reports(work)
    assert first == second == [True] * len(first)
    assert len(first) > 3  # more buckets than one, once they are rebuilt


def test_a_pass_may_make_collectives_of_its_own():
    """Rank 1 makes them after its messages, rank 0 before: in one group each would take the other's for its own."""

    def work(place):
        sums, begun = [], threading.Event()

        def summed(gradient):
            if place.rank == 1 and hook.steps:  # the first pass has a single bucket
                assert begun.wait(PATIENCE_S)
            total = torch.ones(3) + place.rank
            dist.all_reduce(total)
            sums.append(total.tolist())
            begun.set()
            return gradient

        model = DistributedDataParallel(Chain(summed), bucket_cap_mb=0.001)
        hook = register(model, QSGD(levels=4))
        exchange = hook._exchange

        def late_on_rank_0(bucket):
            if place.rank == 0 and hook.steps:
                assert begun.wait(PATIENCE_S)
            phases = exchange(bucket)
            yield next(phases)  # its lengths are under way
            begun.set()
            return (yield from phases)

        hook._exchange = late_on_rank_0
        for _ in range(2):
            begun.clear()
            model(torch.tensor(1.0)).backward()
        return sums, gradients_of(model)

    (sums, gradients), (sums_1, gradients_1) = reports(work)
    assert sums == sums_1 == [[3.0] * 3] * 2
    assert_same([gradients], [gradients_1])


def test_what_fails_for_an_early_bucket_is_raised_by_every_rank():
    def work(place):
        model = DistributedDataParallel(Chain(), bucket_cap_mb=0.001)
        hook, sentences = register(model, QSGD(levels=4)), []
        encode = hook._ends.encode

        def failing(names, parts, step):
            if place.rank == 1 and step == 1 and "c" in names:
                raise ZeroDivisionError("of this rank")
            return encode(names, parts, step)

        hook._ends.encode = failing
        model(torch.tensor(1.0)).backward()
        try:
            model(torch.tensor(1.0)).backward()
        except ValueError as error:
            sentences.append((str(error), type(error.__cause__).__name__))
        return sentences

    first, second = reports(work)
    sentence = "rank 1 could not compress its gradient at step 1; its error says why"
    assert (first, second) == ([(sentence, "NoneType")], [(sentence, "ZeroDivisionError")])
