"""A model that is not finite on one rank is refused on all, changes none of the others, and training can continue."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum, Nesterov
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.tensors import all_finite, first_not_finite, is_finite
from operators import ErrorFeedback, Key, TopK
from operators.summed import SummedPowerSGD
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
WAYS = {
    "models": {},
    "outer": {"outer": Nesterov(0.7, 0.5)},
    "block momentum": {"outer": BlockMomentum(0.5)},
    "deltas": {"operator": TopK(fraction=1.0)},
    "feedback": {"operator": ErrorFeedback(TopK(k=3))},
    "two shots": {"exchange": TwoShot(TopK(fraction=1.0))},
    "summed": {"operator": SummedPowerSGD(rank=1)},
    "nodes": {"operator": TopK(fraction=1.0), "membership": Nodes(2)},
    "corrected": {"merge": Corrected()},
    "corrected, outer": {"merge": Corrected(), "outer": Nesterov(0.7, 0.5)},
    "corrected, deltas": {"merge": Corrected(), "operator": TopK(fraction=1.0)},
    "overwrite": {"merge": Overwrite(delay=1)},
    "delayed": {"merge": Delayed()},
    "eager": {"merge": Eager()},
    "fragments": {"merge": Corrected(fragments=2)},
    "elastic": {"mixing": Elastic(0.2)},
    "gossip": {"mixing": ring(2)},
    "uneven": {"membership": Uneven()},
}
SPOILED_AFTER = {"overwrite": 2}  # local steps of 2 in a round; what is spoilt later is overwritten
BAD = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))


def local_step(model, optimizer, rank, k):
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(100 * k + rank))
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def spoil(model, value):
    with torch.no_grad():
        model[2].weight[1, 0] = value


def whole(model):
    return torch.cat([p.detach().reshape(-1).clone() for p in model.parameters()])


# -- one vector ------------------------------------------------------------------------------------------------
@given(st.lists(st.floats(width=32), min_size=1, max_size=8))
def test_the_first_entry_that_is_not_finite_is_found(values):
    bad = [i for i, value in enumerate(values) if not math.isfinite(value)]
    vector = torch.tensor(values, dtype=torch.float32)
    assert is_finite(vector) == (not bad)
    assert first_not_finite(vector) == (bad[0] if bad else -1)


def test_a_sum_that_overflows_is_no_sign():
    assert is_finite(torch.full((8,), 3e38))
    assert all_finite({"a": [torch.ones(2), 1.0, "x", torch.tensor([1])]})
    assert not all_finite({"a": [{"b": torch.tensor([math.inf])}]})
    assert not all_finite([math.nan])


# -- simulated workers -----------------------------------------------------------------------------------------
@pytest.mark.every(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", BAD)
def test_all_refuse_with_the_name_and_continue_from_the_finite_models(way, value):
    models = [network() for _ in range(4 if way == "nodes" else 2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=2, **WAYS[way])
    refused, k = "", 0
    for k in range(12):
        losses = [local_step(*pair, rank, k) for rank, pair in enumerate(zip(models, optimizers, strict=True))]
        if k == SPOILED_AFTER.get(way, 3):
            spoil(models[1], BAD[value])
        before = whole(models[0])
        try:
            workers.step(losses)
        except ValueError as error:
            refused = str(error)
            assert torch.equal(whole(models[0]), before), "the good model is not changed"
            workers.recover()
            break
    assert "rank 1" in refused, (k, refused)
    assert "2.weight" in refused, refused
    assert is_finite(whole(models[0]))
    assert torch.equal(whole(models[0]), whole(models[1]))
    for k in range(12, 18):
        workers.step([local_step(*pair, r, k) for r, pair in enumerate(zip(models, optimizers, strict=True))])
    workers.average()
    assert all(is_finite(whole(model)) for model in models)
    assert all(is_finite(b) for model in models for b in model.buffers())


def test_a_rank_that_is_not_drawn_is_not_asked():
    models = [torch.nn.Linear(2, 2) for _ in range(3)]
    workers = SimulatedWorkers(models, schedule=1, mixing=Sampled(1, Key(3)))
    drawn = workers.participants[0]
    with torch.no_grad():
        models[(drawn + 1) % 3].weight.fill_(float("nan"))
    workers.step()
    assert all(is_finite(whole(model)) for model in models)


def test_finite_movements_whose_mean_or_outer_step_overflows_are_refused():
    for settings in ({"outer": Nesterov(1.0, 0.9)}, {"operator": TopK(fraction=1.0)}, {"merge": Corrected()}):
        models = [torch.nn.Linear(1, 1, bias=False).double() for _ in range(2)]
        if settings.get("operator"):
            models = [model.float() for model in models]
        most = torch.finfo(models[0].weight.dtype).max
        workers = SimulatedWorkers(models, schedule=1, **settings)
        with pytest.raises(ValueError, match=r"not finite|overflows"):  # noqa: PT012
            for sign in (1, -1, 1, -1):
                for model in models:
                    with torch.no_grad():
                        model.weight.fill_(sign * most)
                workers.step()
        for model in models:
            with torch.no_grad():
                model.weight.fill_(1.0)
        workers.recover()
        workers.step()
        assert [model.weight.item() for model in models] == [1.0, 1.0]


def test_without_a_finite_model_all_return_to_the_start_of_the_round_or_say_that_it_is_not_kept():
    for settings, kept in (({"outer": Nesterov(0.7, 0.5)}, True), ({}, False)):
        models = [torch.nn.Linear(2, 2) for _ in range(2)]
        workers = SimulatedWorkers(models, schedule=1, **settings)
        start = whole(models[0])
        for model in models:
            with torch.no_grad():
                model.weight.fill_(float("nan"))
        with pytest.raises(ValueError, match="the movement of rank 0"):
            workers.step()
        if kept:
            workers.recover()
            assert torch.equal(whole(models[1]), start)
        else:
            with pytest.raises(ValueError, match="no rank has a finite model"):
                workers.recover()


def test_moments_that_are_not_finite_are_dropped_by_recovery():
    models = [torch.nn.Linear(2, 2) for _ in range(2)]
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.1) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=1, merge=Blocking(optimizer_state="average"))
    for model, optimizer in zip(models, optimizers, strict=True):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    optimizers[1].state[models[1].weight]["exp_avg"][0, 0] = float("nan")
    with pytest.raises(ValueError, match="the optimizer state exp_avg of weight on rank 1 is not finite"):
        workers.step()
    workers.recover()
    assert models[1].weight not in optimizers[1].state
    assert models[1].bias in optimizers[1].state
    workers.step()


# -- real ranks ------------------------------------------------------------------------------------------------
REAL = [name for name in WAYS if name != "nodes"]


def _on_real_ranks(place):
    return {name: _run(place, name) for name in REAL} | {
        "scaler": _with_scaler(place, {}),
        "scaler, adaptive": _with_scaler(place, {"schedule": AdaComm(tau_0=2, interval_s=1000.0)}),
        "scaler, deltas": _with_scaler(place, {"operator": TopK(fraction=1.0)}),
    }


def _run(place, name):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    averaging = PeriodicAveraging(model, optimizer, schedule=2, **WAYS[name])
    words, when, unchanged = "", [], True
    for k in range(12):
        loss = local_step(model, optimizer, place.rank, k)
        if k == SPOILED_AFTER.get(name, 3) and place.rank:
            spoil(model, float("nan"))
        before = whole(model)
        try:
            averaging.step(loss)
        except ValueError as error:
            words, when = str(error), [*when, k]
            unchanged = unchanged and (place.rank > 0 or torch.equal(before, whole(model)))
            averaging.recover()
    averaging.average()
    return words, when, unchanged, whole(model)


def _with_scaler(place, settings):
    """A loop with a loss scaler whose scale is too large at first, and that once spoils a model."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(device="cpu", init_scale=2.0**127)
    averaging = PeriodicAveraging(model, optimizer, **({"schedule": 2} | settings))
    refusals = []
    for k in range(14):
        optimizer.zero_grad()
        x = 8 * torch.randn(6, 4, generator=torch.Generator().manual_seed(100 * k + place.rank))
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if k == 8 and place.rank:
            spoil(model, float("inf"))
        try:
            averaging.step(loss)
        except ValueError:
            refusals.append(k)
            averaging.recover()
    averaging.average()
    return refusals, whole(model)


@pytest.fixture(scope="module")
def reports():
    return in_ranks(_on_real_ranks, processes=2)


@pytest.mark.parametrize("way", REAL)
def test_real_ranks_raise_the_same_sentence_at_the_same_step(reports, way):
    (words, when, unchanged, model), (others, then, _, twin) = (report[way] for report in reports)
    assert words == others
    assert "rank 1" in words
    assert len(when) == 1
    assert when == then
    assert unchanged
    assert way == "elastic" or (model == twin).all()  # which keeps the models apart
    assert is_finite(torch.from_numpy(model))


@pytest.mark.parametrize("way", ["scaler", "scaler, adaptive", "scaler, deltas"])
def test_a_loop_with_a_loss_scaler_continues_after_a_refused_step(reports, way):
    (refusals, model), (others, twin) = (report[way] for report in reports)
    assert refusals == others
    assert len(refusals) == 1
    assert (model == twin).all()
    assert is_finite(torch.from_numpy(model))
