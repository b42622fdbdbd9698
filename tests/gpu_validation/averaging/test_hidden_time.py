"""What averages in flight cost: nobody waits for a message before its merge, and a round costs max(tau Y, D)."""

import threading

import numpy as np
import pytest
import torch
import torch.distributed as dist

from bounds.runtime import Constant, RuntimeModel
from bounds.schedules.gradient_retention import LEAST_DECLINE, best_integer
from gpu_validation import Nesterov
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import Key
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)


def test_steps_go_on_while_a_message_is_held_up():
    """The message is let go by the step before the merge: a process that waited for it would wait for ever.

    Collectives of the script go on too, for the message has a group of its own.
    """

    def work(place):
        model = torch.nn.Linear(3, 2)
        averaging = PeriodicAveraging(model, schedule=6, merge=Corrected(delay=4), outer=Nesterov(0.7, 0.9))
        leave, swap = threading.Event(), averaging.transport._swap

        def held_up(*arguments):
            assert leave.wait(60)
            swap(*arguments)

        averaging.transport._swap = held_up
        under_way = []
        for step in range(1, 7):
            with torch.no_grad():
                model.weight += place.rank + 1.0
            total = torch.ones(1)
            dist.all_reduce(total)
            assert total == 2.0
            if step == 6:
                leave.set()
            averaging.step()
            flight = averaging.engine.overlapped.parts[0].flight
            under_way.append(flight is not None and flight.thread.is_alive())
        return under_way, model.weight.detach()

    first, second = in_ranks(work, processes=2)
    assert first[0] == second[0] == [False, True, True, True, True, False]
    # theta' = start + (.7 + .63) times the mean movement of two steps, 3; then four steps of 1 or 2
    np.testing.assert_allclose(second[1] - first[1], np.full((2, 3), 4.0), rtol=1e-5)


def simulated(schedule, *, delay_s, steps=200, **settings):
    """Taus, and seconds of the rounds, of workers whose local steps take 1 s."""
    models = [torch.nn.Linear(2, 1) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-3) for model in models]
    clock = SimulatedClock(RuntimeModel(Constant(1.0), delay_s=delay_s), m=2, key=Key(0))
    workers = SimulatedWorkers(models, optimizers, schedule=Pacing(schedule, clock=clock), **settings)

    def closure(i):
        def loss():
            models[i].weight.grad = torch.ones_like(models[i].weight)  # the gradient declines by nothing
            models[i].bias.grad = torch.ones_like(models[i].bias)
            return models[i].weight.detach().sum()

        return loss

    taus = []
    for _ in range(steps):
        losses = [closure(i)() for i in range(2)]
        for optimizer in optimizers:
            optimizer.step()
        accounts = workers.step(losses, [closure(i) for i in range(2)])
        if accounts:
            taus.append(accounts[0].tau)
    return taus, np.diff([0.0, *(event.seconds for event in clock.events)]), workers.engine.inputs


@pytest.mark.parametrize(
    ("tau", "delay", "seconds"), [(8, 4, 8.0), (8, 8, 8.0), (8, 1, 8 + 2.5 - 1), (2, 2, 2.5), (2, 1, 1 + 2.5)]
)
def test_a_round_costs_its_steps_or_those_before_the_send_and_the_average(tau, delay, seconds):
    _, rounds, _ = simulated(tau, delay_s=2.5, merge=Corrected(delay=delay))
    assert set(rounds) == {seconds}


@pytest.mark.parametrize("merge", [Delayed(), Eager()], ids=repr)
def test_a_message_that_has_a_whole_round_costs_the_larger(merge):
    assert set(simulated(2, delay_s=2.5, merge=merge)[1][1:]) == {2.5}
    assert set(simulated(4, delay_s=2.5, merge=merge)[1][1:]) == {4.0}


def test_auto_ends_at_the_whole_number_above_the_delay():
    """Nothing is lost by local steps here, so that waiting workers take as many as the least decline allows."""
    in_flight, _, _ = simulated("auto", delay_s=6.5, merge=Corrected(), steps=300)
    waiting, _, _ = simulated("auto", delay_s=6.5, steps=600)

    assert in_flight == [4, 8, *[7] * (len(in_flight) - 2)]
    assert waiting[-1] == best_integer(delay_ratio=6.5, decline=LEAST_DECLINE * 2**0.5)
