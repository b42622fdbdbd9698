"""Averaging by sums on the way: simulated workers and real processes alike bit for bit, every byte predicted."""

import numpy as np
import pytest
import torch

from bounds.runtime import Constant, RuntimeModel
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import Key
from operators.random import normal
from operators.summed import SharedScale, SignVote, SummedPowerSGD, sum_of_ranks
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
ETA, STEPS, D = 0.25, 6, 24
SETTINGS = {
    "shared scale": {"operator": SharedScale(8)},
    "shared scale, sampled": {"operator": SharedScale(12, block=8), "mixing": Sampled(2, Key(4))},
    "votes": {"operator": SignVote()},
    "power iteration": {"operator": SummedPowerSGD(1, (4, 6))},
    "power iteration, sampled": {"operator": SummedPowerSGD(1, (4, 6)), "mixing": Sampled(2, Key(4))},
    "block momentum": {"operator": SharedScale(8), "outer": BlockMomentum(0.2)},
}


class Point(torch.nn.Module):
    def __init__(self, d=D):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))


def clock(m):
    return SimulatedClock(RuntimeModel(Constant(1.0)), m=m, key=Key(8))


def local_step(model, optimizer, rank, step):
    model.x.grad = torch.from_numpy(normal(Key(2, step=step, rank=rank), model.x.numel()).astype(np.float32))
    optimizer.step()


def simulated(m, **settings):
    models = [Point() for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in models]
    return (
        models,
        optimizers,
        SimulatedWorkers(models, optimizers, schedule=Pacing(2, clock=clock(m)), key=Key(1), **settings),
    )


def in_one_process(m, steps=STEPS, **settings):
    models, optimizers, workers = simulated(m, **settings)
    for step in range(steps):
        for rank, pair in enumerate(zip(models, optimizers, strict=True)):
            local_step(*pair, rank, step)
        workers.step()
    return [model.x.detach().numpy() for model in models]


def averaging_of(m, **settings):
    model = Point()
    optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
    return (
        model,
        optimizer,
        PeriodicAveraging(model, optimizer, schedule=Pacing(2, clock=clock(m)), key=Key(1), **settings),
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("m", [2, 3])
def test_simulated_workers_make_the_run_of_real_processes_bit_for_bit(m):
    def work(place):
        runs = {}
        for name, settings in SETTINGS.items():
            model, optimizer, averaging = averaging_of(m, **settings)
            for step in range(STEPS):
                local_step(model, optimizer, place.rank, step)
                averaging.step()
            assert averaging.exchange == "sum"
            transport = averaging.transport
            runs[name] = model.x, transport.payload_bytes, transport.predicted_bytes
        return runs

    results = in_ranks(work, m)

    for name, settings in SETTINGS.items():
        expected = in_one_process(m, **settings)
        assert any(x.any() for x in expected)
        for rank, result in enumerate(results):
            np.testing.assert_array_equal(result[name][0], expected[rank], err_msg=name)
        assert sum(result[name][1] for result in results) == results[0][name][2], name


def test_first_movement_is_the_sum_of_the_ranks():
    m = 4
    x = in_one_process(m, steps=2, operator=SharedScale(8))

    steps = [[normal(Key(2, step=step, rank=rank), D).astype(np.float32) for step in range(2)] for rank in range(m)]
    deltas = []
    for rank in range(m):
        point = torch.zeros(D)
        for gradient in steps[rank]:
            point -= ETA * torch.from_numpy(gradient)
        deltas.append(point)
    mean = sum_of_ranks(deltas, SharedScale(8), key=Key(1, step=0, rank=None)).mean
    np.testing.assert_array_equal(x[0], mean.numpy())


def test_what_a_rank_sends_does_not_grow_with_the_number_of_ranks():
    for m in (2, 4, 8):
        models, optimizers, workers = simulated(m, operator=SummedPowerSGD(1, (4, 6)))
        accounts = None
        for step in range(2):
            for rank, pair in enumerate(zip(models, optimizers, strict=True)):
                local_step(*pair, rank, step)
            accounts = workers.step()
        assert accounts[0].bits == (32 * 10,) * m  # a rank's terms: 4 and 6 numbers
        assert sum(accounts[0].mean_bits) == 32 * 10


def test_a_restart_goes_on_bit_for_bit():
    expected = in_one_process(3, operator=SummedPowerSGD(1, (4, 6)))
    models, optimizers, workers = simulated(3, operator=SummedPowerSGD(1, (4, 6)))
    for step in range(STEPS):
        if step == 4:
            state, values = workers.state_dict(), [model.x.detach().clone() for model in models]
            models, optimizers, workers = simulated(3, operator=SummedPowerSGD(1, (4, 6)))
            for model, value in zip(models, values, strict=True):
                model.x.data.copy_(value)
            workers.load_state_dict(state)
        for rank, pair in enumerate(zip(models, optimizers, strict=True)):
            local_step(*pair, rank, step)
        workers.step()

    np.testing.assert_array_equal(models[0].x.detach().numpy(), expected[0])


def test_a_movement_that_is_not_finite_is_told_to_all_ranks():
    def work(place):
        model, optimizer, averaging = averaging_of(3, operator=SharedScale(8))
        for step in range(2):
            local_step(model, optimizer, place.rank, step)
            if place.rank == 1:
                model.x.data[3] = torch.inf
            try:
                averaging.step()
            except ValueError as error:
                return str(error)
        return ""

    sentences = in_ranks(work, 3)

    assert all("rank 1" in sentence and "not finite in binary32" in sentence for sentence in sentences)
    assert len(set(sentences)) == 1
