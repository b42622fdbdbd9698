"""A worker's vector, its movement, and what rounding to its dtype must not lose."""

import numpy as np
import pytest
import torch

from gpu_validation.averaging.exchange.movements import Sender
from gpu_validation.averaging.mixing import gossip
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.averaging.worker import Worker
from operators import Identity, Key, ScaledSign


class Point(torch.nn.Module):
    def __init__(self, *x, dtype=torch.bfloat16):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(x, dtype=dtype))


def move(models, amounts):
    with torch.no_grad():
        for model, amount in zip(models, amounts, strict=True):
            model.x += amount


@pytest.mark.parametrize("operator", [None, Identity()], ids=repr)
def test_movements_below_the_resolution_of_bfloat16_add_up(operator):
    models = [Point(1.0) for _ in range(4)]
    workers = SimulatedWorkers(models, schedule=1, operator=operator)
    step = 2.0**-7  # the spacing of bfloat16 at 1: the mean movement of one worker's step is a quarter of it

    seen = []
    for _ in range(8):
        move(models, [step, 0, 0, 0])
        workers.step()
        seen.append((models[3].x.item() - 1) / step)

    assert workers.engine.workers[0].anchor.item() == 1 + 2 * step
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2]  # the anchor is at 1/4, 1/2, 3/4, ...; ties go to even


def test_a_worker_that_rests_sends_nothing_but_zeros():
    models = [Point(1.0, 3.0) for _ in range(2)]
    workers = SimulatedWorkers(models, schedule=1)
    move(models, [2.0**-7, 0])
    workers.step()  # the anchor is now between two numbers of bfloat16

    assert workers.engine.workers[0].anchor[0].item() == 1 + 2.0**-8
    assert models[0].x[0].item() == 1.0
    for worker in workers.engine.workers:
        np.testing.assert_array_equal(worker.delta(), [0, 0])
    move(models, [2.0**-7, 0])
    np.testing.assert_array_equal(workers.engine.workers[0].delta(), [2.0**-7, 0])


def test_the_sum_of_anchors_is_conserved_by_gossip_of_rounded_models():
    models = [Point(1.0) for _ in range(3)]
    W = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    workers = SimulatedWorkers(models, schedule=1, mixing=gossip(W))
    for round_index in range(20):
        move(models, [2.0**-7 * (round_index % 3), 0, -(2.0**-8)])  # -2^-8 is exact below 1
        before = sum(
            model.x.item() + (w.anchor - w.start).item()
            for model, w in zip(models, workers.engine.workers, strict=True)
        )
        workers.step()
        assert sum(w.anchor.item() for w in workers.engine.workers) == before


def test_models_of_several_dtypes_are_one_vector_in_the_wider():
    model = torch.nn.Sequential(torch.nn.Linear(2, 1).bfloat16(), torch.nn.Linear(1, 1))
    worker = Worker(model, None)

    assert worker.vector().dtype == worker.anchor.dtype == torch.float32
    assert not worker.full_precision
    worker.begin(torch.full((5,), 1 + 2.0**-12))
    assert worker.start.tolist() == [1, 1, 1, 1 + 2.0**-12, 1 + 2.0**-12]


def test_layouts_other_than_row_by_row_are_read_in_logical_order():
    model = torch.nn.Conv2d(2, 3, 2, bias=False).to(memory_format=torch.channels_last)
    expected = model.weight.detach().contiguous().reshape(-1)
    worker = Worker(model, None)

    assert torch.equal(worker.vector(), expected)
    worker.begin(2 * expected)
    assert torch.equal(model.weight.detach().contiguous().reshape(-1), 2 * expected)
    assert model.weight.is_contiguous(memory_format=torch.channels_last)


def test_integer_buffers_become_the_nearest_mean_and_boolean_ones_stay():
    models = [Point(0.0, dtype=torch.float32) for _ in range(3)]
    for model in models:
        model.register_buffer("count", torch.tensor(0))
        model.register_buffer("mask", torch.tensor([True]))
    workers = SimulatedWorkers(models, schedule=1)
    for i, model in enumerate(models):
        model.count.fill_(2**40 + 5 * i * (i - 1))
        model.mask.fill_(i == 0)
    workers.step()

    assert [model.count.item() for model in models] == [2**40 + 3] * 3  # 10/3
    assert [model.mask.item() for model in models] == [True, False, False]


def test_models_that_cannot_be_averaged_are_refused():
    with pytest.raises(ValueError, match="the model has no parameters"):
        Worker(torch.nn.Identity(), None)
    with pytest.raises(TypeError, match=r"must be floating-point to be averaged; got x of torch\.complex64"):
        Worker(Point(1j, dtype=torch.complex64), None)


def test_a_movement_that_is_not_finite_is_refused():
    model = Point(1.0)
    worker = Worker(model, None)
    move([model], [float("inf")])

    with pytest.raises(ValueError, match="finite in binary32; got inf at index 0"):
        Sender(ScaledSign(), d=1).encode(worker.delta(), Key(0))
