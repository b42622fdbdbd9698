"""Every parameter and buffer keeps storage, offset, strides and dtype, in every mode and at all times."""

import copy
import multiprocessing

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.utils import parametrizations, parametrize

from gpu_validation.adapters.diloco import DiLoCo
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes, Uneven
from gpu_validation.averaging.merge.rules import Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.outer import Nesterov
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.piloting.pilot import pilot
from operators import QSGD, ErrorFeedback, Identity, Key, ScaledSign, TopK
from operators.summed import SummedPowerSGD
from tests.gpu_validation.averaging.test_survival import Hiccup, Ranks
from tests.gpu_validation.ranks import in_ranks


def places(model):
    tensors = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    return {
        name: (id(t), t.untyped_storage().data_ptr(), t.storage_offset(), t.stride(), t.shape, t.dtype)
        for name, t in tensors.items()
    }


# -- parts of models -------------------------------------------------------------------------------------------
class Tied(torch.nn.Module):
    """One parameter in two modules, and a second one that is its transpose."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.decoder = torch.nn.Parameter(self.embedding.weight.data.t())


class Fused(torch.nn.Module):
    """Parameters and buffers that are views of the user's storage, in rows, in columns and side by side."""

    def __init__(self):
        super().__init__()
        rows, columns, line = torch.randn(6, 4), torch.randn(3, 6), torch.randn(20)
        self.q, self.k, self.v = (torch.nn.Parameter(part) for part in rows.chunk(3))
        self.left, self.right = (torch.nn.Parameter(part) for part in columns.split([2, 4], dim=1))
        self.fused, self.first = torch.nn.Parameter(line[2:12]), torch.nn.Parameter(line[2:5])
        self.register_buffer("statistics", line[13:16])
        self.register_buffer("others", line[17:])


class Odd(torch.nn.Module):
    """Scalars, empty tensors, lists, frozen and expanded parameters, masks and counters."""

    def __init__(self):
        super().__init__()
        self.scale, self.empty = torch.nn.Parameter(torch.tensor(2.0)), torch.nn.Parameter(torch.randn(0, 3))
        self.several = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(n)) for n in (1, 2)])
        self.frozen = torch.nn.Parameter(torch.randn(2, 3).t(), requires_grad=False)
        self.wide = torch.nn.Parameter(torch.randn(1).expand(7), requires_grad=False)
        self.register_buffer("mask", torch.ones(4, 4).tril().bool(), persistent=False)
        self.register_buffer("count", torch.tensor(3))


def images():
    layers = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3))
    return layers.to(memory_format=torch.channels_last)


def parametrized():
    layer = torch.nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "bias", torch.nn.Softplus())
    return parametrizations.weight_norm(layer)


PARTS = {
    "tied": Tied,
    "fused": Fused,
    "odd": Odd,
    "images": images,
    "parametrized": parametrized,
    "narrow": lambda: torch.nn.Linear(3, 2).bfloat16(),
    "recurrent": lambda: torch.nn.LSTM(2, 3),
    "compiled": lambda: torch.compile(torch.nn.Linear(2, 2), backend="eager"),
}


def model_of(names):
    torch.manual_seed(1)
    return torch.nn.ModuleDict({name: PARTS[name]() for name in names})


def train(model, amount):
    with torch.no_grad():
        for i, p in enumerate(p for p in model.parameters() if p.requires_grad):
            p += amount * (1 + i % 3)
        for b in model.buffers():
            if b.is_floating_point():
                b += amount


MODES = {
    "whole models": {},
    "movements": {"operator": QSGD(levels=4)},
    "identity": {"operator": Identity()},
    "feedback": {"operator": ErrorFeedback(TopK(fraction=0.5))},
    "two shots": {"exchange": TwoShot(ScaledSign())},
    "summed": {"operator": SummedPowerSGD(rank=1)},
    "nodes": {"operator": QSGD(levels=4), "membership": Nodes(2)},
    "outer": {"outer": Nesterov(0.7, 0.9)},
    "outer of movements": {"operator": QSGD(levels=4), "outer": Nesterov(0.7, 0.9)},
    "elastic": {"mixing": Elastic(0.3)},
    "gossip": {"mixing": ring(2)},
    "sampled": {"mixing": Sampled(1, Key(3))},
    "uneven": {"membership": Uneven()},
    "corrected": {"merge": Corrected(delay=1)},
    "overwrite": {"merge": Overwrite()},
    "delayed": {"merge": Delayed(), "operator": QSGD(levels=4)},
    "eager": {"merge": Eager()},
    "fragments": {"merge": Corrected(fragments=2), "outer": Nesterov(0.7, 0.9)},
}


@pytest.mark.parametrize("mode", MODES)
@example(names=sorted(PARTS))
@settings(max_examples=max(4, settings().max_examples // 40))  # a third of a second each, in each of the modes
@given(names=st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3, unique=True))
def test_simulated_workers_keep_their_tensors_where_they_are(mode, names):
    models = [model_of(names) for _ in range(4 if mode == "nodes" else 2)]
    before = [places(model) for model in models]
    workers = SimulatedWorkers(models, schedule=2, **MODES[mode])
    assert [places(model) for model in models] == before
    for step in range(5):
        for rank, model in enumerate(models):
            train(model, 0.25 * rank)
        workers.step()
        assert [places(model) for model in models] == before, step
    kept = copy.deepcopy(workers.state_dict())
    workers.average()
    workers.load_state_dict(kept)
    workers.average()
    assert [places(model) for model in models] == before
    if "tied" in names:
        tied = models[0]["tied"]
        assert torch.equal(tied.decoder, tied.embedding.weight.t())


# -- real processes --------------------------------------------------------------------------------------------
def moved(model, before):
    """Names of tensors that are not where they were."""
    return [name for name, place in places(model).items() if place != before[name]]


def in_one_mode(place, settings):
    """Moments at which a tensor was not where it had been, in a run with everything that may happen to one."""
    model, found = model_of(PARTS), {}
    before = places(model)

    def look(moment):
        if names := moved(model, before):
            found.setdefault(moment, names)

    averaging = PeriodicAveraging(model, torch.optim.Adam(model.parameters()), schedule=3, telemetry=True, **settings)
    look("after the start")
    for step in range(7):
        train(model, 0.25 * place.rank)
        averaging.step()
        look(f"after step {step}")
    model.load_state_dict({k: v + 1 for k, v in model.state_dict().items() if "wide" not in k}, strict=False)
    averaging.load_state_dict(averaging.state_dict())
    uneven = "membership" in settings
    if uneven:
        averaging.leave()
    else:
        averaging.average()
    look("after states were loaded")
    if "merge" not in settings and not uneven:
        model["added"] = torch.nn.Linear(2, 2)
        before.update({f"added.{name}": place for name, place in places(model["added"]).items()})
        averaging.average()
        look("after the structure changed")
    if {"operator", "exchange"} & set(settings) and not uneven:
        with torch.no_grad():
            model["fused"].q.fill_(torch.nan)
        with pytest.raises(ValueError, match=r"fused\.q"):
            averaging.average()
        look("after an error")
    return found


REAL = {name: settings for name, settings in MODES.items() if name != "nodes"}


def test_ranks_keep_their_tensors_where_they_are():
    def work(place):
        found = {name: in_one_mode(place, settings) for name, settings in REAL.items()}
        model = model_of(PARTS)
        before, optimizer = places(model), torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
        with DiLoCo(model, optimizer, sync_every=2, outer=Nesterov(0.7, 0.9)):
            for _ in range(3):
                for p in model.parameters():
                    p.grad = torch.ones_like(p) if p.requires_grad else None
                optimizer.step()
        return {**found, "DiLoCo": moved(model, before)}

    for found in in_ranks(work, processes=2):
        assert not any(found.values()), found


def test_a_quorum_keeps_tensors_where_they_are_also_when_an_averaging_is_made_again():
    def work(quorum, report):
        model = model_of(PARTS)
        before = places(model)
        averaging = PeriodicAveraging(model, schedule=2, membership=quorum)
        hiccup = Hiccup(averaging.transport, after=False)
        for step in range(5):
            train(model, 0.25 * quorum.member)
            if quorum.member == 1 and step == 3:
                hiccup.calls, hiccup.fatal = 0, 1
            averaging.step()
        averaging.average()
        return moved(model, before), averaging.total_steps

    ranks = Ranks(work, ranks=2)
    try:
        assert [*ranks.ends(2).values()] == [([], 5)] * 2
    finally:
        for process in multiprocessing.active_children():
            process.kill()
            process.join()


def test_a_pilot_keeps_tensors_where_they_are():
    model = model_of(set(PARTS) - {"odd"})  # torch itself loads no state into expanded parameters
    before, optimizer = places(model), torch.optim.Adam(model.parameters(), lr=1e-3)

    def squares(model, batch):
        return sum((p.float() * batch).square().sum() for p in model.parameters())

    batches = [torch.ones(())] * 60
    trials = {"rounds": 2, "round_taus": (1, 2), "worker_batches": [batches] * 2, "operators": (QSGD(levels=4),)}
    pilot(model, optimizer, squares, batches, moments=2, taus=(1, 2), **trials)

    assert not moved(model, before)
