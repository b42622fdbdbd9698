"""Models in bfloat16 and float16: movements below half a unit in the last place add up, in every mode."""

import copy

import pytest
import torch

from gpu_validation.adapters.diloco import DiLoCo
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager
from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.outer import SGD
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import ErrorFeedback, Identity, Key, TopK
from tests.gpu_validation.ranks import in_ranks

M, ROUNDS = 4, 1000
ULP = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}  # the spacing of numbers at 1


class Point(torch.nn.Module):
    def __init__(self, dtype, d=3):
        super().__init__()
        self.x = torch.nn.Parameter(torch.ones(d, dtype=dtype))


def nudge(model, amount):
    """Move by less than four units in the last place, back and forth, so that the model stays near 1."""
    with torch.no_grad():
        model.x += amount


# settings, and the share of the mean movement by which the common model moves
MODES = {
    "whole models": ({}, 1),
    "identity": ({"operator": Identity()}, 1),
    "feedback": ({"operator": ErrorFeedback(TopK(fraction=1.0))}, 1),
    "two shots": ({"exchange": TwoShot(Identity())}, 1),
    "nodes": ({"operator": Identity(), "membership": Nodes(2)}, 1),
    "uneven": ({"membership": Uneven()}, 1),
    "outer": ({"outer": SGD(0.25)}, 0.25),
    "corrected": ({"merge": Corrected()}, 1),
    "late": ({"merge": Corrected(delay=1), "outer": SGD(0.25)}, 0.25),
    "delayed": ({"merge": Delayed()}, 1),
    "eager": ({"merge": Eager()}, 1),
    "outer in flight": ({"merge": Delayed(), "outer": SGD(0.25)}, 0.25),
    "movements in flight": ({"merge": Corrected(), "operator": Identity()}, 1),
    "fragments": ({"merge": Corrected(fragments=3)}, 1),
}


def run(mode, dtype, tau, rounds):
    """One worker of four steps by one unit in the last place, so that the mean moves by a quarter of it.

    Directions change now and then, so that the model stays near 1.
    """
    settings, share = MODES[mode]
    models, total = [Point(dtype) for _ in range(M)], 0.0
    workers = SimulatedWorkers(models, schedule=tau, **settings)
    for index in range(rounds):
        amount = ULP[dtype] * (1 if index % 64 < 40 else -1)
        for step in range(tau):
            nudge(models[index % M], amount if step == tau // 2 else 0.0)
            workers.step()
        total += amount
    workers.average()
    assert abs(total) > 16 * ULP[dtype], "or nothing has been looked at"
    exact = 1 + share * total / M
    for worker, model in zip(workers.engine.workers, models, strict=True):
        common = workers.engine.overlapped.thetas()[0] if workers.engine.overlapped else worker.anchor
        assert common.dtype == torch.float32
        assert (common.double() - exact).abs().max() <= rounds * 2.0**-24
        assert torch.equal(model.x, common.to(dtype))


@pytest.mark.parametrize("dtype", ULP, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_small_movements_add_up_with_several_local_steps(mode, dtype):
    run(mode, dtype, tau=3, rounds=40)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", sorted(MODES.keys() - {"fragments"}))
def test_a_thousand_small_movements_add_up(mode):
    run(mode, torch.bfloat16, tau=1, rounds=1000)


@pytest.mark.parametrize("mixing", [Elastic(0.2), ring(M), Sampled(2, Key(3))], ids=repr)
def test_small_movements_add_up_where_models_differ_or_some_are_drawn(mixing):
    """What all models have moved together is what was put into them."""
    models = [Point(torch.bfloat16) for _ in range(M)]
    workers, ulp, total = SimulatedWorkers(models, schedule=1, mixing=mixing), ULP[torch.bfloat16], 0.0
    for index in range(200):
        rank = workers.participants[0]
        amount = ulp * (1 if index % 64 < 40 else -1)
        nudge(models[rank], amount)
        total += amount / len(workers.participants) if isinstance(mixing, Sampled) else amount / M
        workers.step()
    held = [w.anchor.double() for w in workers.engine.workers]
    if isinstance(mixing, Elastic):  # the centre is one more model, and what it has gained they have lost
        centre = workers.engine.workers[0].mixing_state["anchor"].double()
        total *= M / (M + 1)
        held.append(centre)
    assert (torch.stack(held).mean(dim=0) - 1 - total).abs().max() <= 200 * 2.0**-23
    assert abs(total) > 4 * ulp


def test_a_run_that_is_resumed_in_flight_goes_on_with_what_rounding_has_left_out():
    def steps(workers, models, first, last):
        for index in range(first, last):
            nudge(models[index % M], ULP[torch.bfloat16])
            workers.step()

    settings = {"schedule": 4, "merge": Corrected(delay=2, fragments=2)}
    straight, models = [], [Point(torch.bfloat16) for _ in range(M)]
    workers = SimulatedWorkers(models, **settings)
    steps(workers, models, 0, 23)
    state, values = copy.deepcopy(workers.state_dict()), [m.x.detach().clone() for m in models]
    steps(workers, models, 23, 50)
    straight = [m.x.detach().clone() for m in models]

    models = [Point(torch.bfloat16) for _ in range(M)]
    workers = SimulatedWorkers(models, **settings)
    for model, value in zip(models, values, strict=True):
        model.x.data.copy_(value)
    workers.load_state_dict(state)
    steps(workers, models, 23, 50)

    assert all(torch.equal(m.x, x) for m, x in zip(models, straight, strict=True))


def test_ranks_and_adapters_keep_small_movements_in_flight_and_waiting():
    def work(place):
        found = {}
        for name in ("whole models", "outer", "delayed", "fragments", "movements in flight"):
            settings, share = MODES[name]
            model = Point(torch.bfloat16)
            averaging = PeriodicAveraging(model, schedule=3, **settings)
            for _ in range(3 * 40):
                nudge(model, ULP[torch.bfloat16] if place.rank == averaging.total_steps % 3 == 0 else 0.0)
                averaging.step()
            averaging.average()
            found[name] = averaging.anchor.double() - 1, share * 40 * ULP[torch.bfloat16] / place.size
        model = Point(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=ULP[torch.bfloat16])
        with DiLoCo(model, optimizer, sync_every=1, outer=SGD(0.25)) as adapter:
            for _ in range(40):
                model.x.grad = torch.full_like(model.x, -1.0 if place.rank == 0 else 0.0)
                optimizer.step()
        found["DiLoCo"] = adapter.averaging.anchor.double() - 1, 0.25 * 40 * ULP[torch.bfloat16] / place.size
        return found

    for found in in_ranks(work, processes=3):
        for name, (moved, expected) in found.items():
            assert abs(moved - expected).max() <= 60 * 2.0**-24, name
