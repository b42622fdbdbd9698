"""Virtual workers make the run that as many real processes make, bit for bit."""

import io
from functools import cache

import numpy as np
import pytest
import torch

from bounds.runtime import Exponential, Ring, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Eager
from gpu_validation.averaging.mixing import Elastic, Sampled, ring
from gpu_validation.averaging.outer import SGD, BlockMomentum, Nesterov
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers, vmapped_gradients
from gpu_validation.processes.tensors import flat
from gpu_validation.workloads import Quadratic, SmallNetwork
from gpu_validation.workloads.digits import digits
from operators import QSGD, TCDQ, ErrorFeedback, Key, TopK
from tests.gpu_validation.ranks import in_ranks, plain

pytestmark = pytest.mark.timeout(200)
M, STEPS = 4, 200
RUNTIME = RuntimeModel(ShiftedExponential(0.8, 0.2), delay_s=Exponential(1.0), communication=Ring(0.01, 1e3))
ADACOMM = AdaComm(tau_0=24, interval_s=40.0, gamma=0.7)


class Normalised(torch.nn.Module):
    """A small network with BatchNorm statistics and a counter, in float32 or bfloat16."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.out = torch.nn.Linear(3, 1)
        with torch.no_grad():
            self.out.weight.copy_(torch.tensor([[0.5, -0.25, 1.0]]))
            self.out.bias.zero_()
        self.to(dtype)

    def forward(self, x):
        return self.out(self.norm(x))


def regression(model, key):
    x = torch.from_numpy(np.random.Generator(np.random.Philox(key=key.step * M + key.rank)).standard_normal((6, 3)))
    x = (x + key.rank).to(model.out.weight.dtype)
    return (model(x).float() - x.sum(dim=1, keepdim=True).float()).square().mean()


def quadratic(model, key):
    return Quadratic().loss(model, key=key)


# name -> (model, loss, steps, momentum of the local steps, settings of the averaging)
RUNS = {
    "qsgd, block momentum, adacomm": (
        *(Quadratic().model, quadratic, STEPS, 0.0),
        {"schedule": ADACOMM, "operator": QSGD(levels=4), "outer": BlockMomentum(0.3)},
    ),
    "tcdq, momentum reset, adacomm": (
        *(Quadratic().model, quadratic, STEPS, 0.9),
        {"schedule": ADACOMM, "operator": TCDQ(omega=1.0), "merge": Blocking(optimizer_state="reset")},
    ),
    "feedback, momentum averaged": (
        *(Normalised, regression, 120, 0.5),
        {"schedule": 10, "operator": ErrorFeedback(TopK(k=2)), "merge": Blocking(optimizer_state="average")},
    ),
    "whole bfloat16 models": (lambda: Normalised(torch.bfloat16), regression, 60, 0.0, {"schedule": 5}),
    "outer nesterov": (
        *(Normalised, regression, 60, 0.5),
        {"schedule": 6, "outer": Nesterov(0.7, 0.9)},
    ),
    "outer nesterov, qsgd": (
        *(Normalised, regression, 60, 0.0),
        {"schedule": 6, "outer": Nesterov(0.7, 0.9), "operator": QSGD(levels=4)},
    ),
    "in flight, corrected": (
        *(Normalised, regression, 60, 0.5),
        {"schedule": 6, "merge": Corrected(delay=4), "outer": Nesterov(0.7, 0.9)},
    ),
    "in flight, eager": (
        *(Normalised, regression, 60, 0.5),
        {"schedule": 6, "merge": Eager(optimizer_state="reset"), "outer": SGD(0.9)},
    ),
    "in flight, delayed feedback": (
        *(Normalised, regression, 60, 0.5),
        {"schedule": 6, "merge": Delayed(), "exchange": TwoShot(ErrorFeedback(TopK(k=2)))},
    ),
    "in flight, fragments, qsgd": (
        *(Normalised, regression, 60, 0.5),
        {"schedule": 6, "merge": Corrected(delay=4, fragments=2), "operator": QSGD(levels=4)},
    ),
    "in flight, adacomm": (
        *(Quadratic().model, quadratic, STEPS, 0.0),
        {"schedule": ADACOMM, "merge": Corrected(), "outer": Nesterov(0.9, 0.3)},
    ),
    "elastic": (Normalised, regression, 60, 0.0, {"schedule": 6, "mixing": Elastic(0.2)}),
    "gossip": (
        Normalised,
        regression,
        60,
        0.5,
        {"schedule": 6, "mixing": ring(M), "merge": Blocking(optimizer_state="average")},
    ),
    "sampled": (
        *(Quadratic().model, quadratic, STEPS, 0.0),
        {
            "schedule": ADACOMM,
            "operator": ErrorFeedback(TopK(k=2)),
            "mixing": Sampled(2, Key(4)),
            "outer": BlockMomentum(0.2),
        },
    ),
}
LONG = [name for name, (_, _, steps, _, _) in RUNS.items() if steps == STEPS]
NAMES = [pytest.param(name, marks=pytest.mark.thorough) if name in LONG else name for name in RUNS]


def local_step(model, optimizer, loss, step, rank):
    optimizer.zero_grad()
    value = loss(model, Key(3, step=step, rank=rank))
    value.backward()
    optimizer.step()
    return value


def paced(settings):
    clock = SimulatedClock(RUNTIME, m=M, key=Key(8))
    return settings | {"schedule": Pacing(settings["schedule"], clock=clock), "key": Key(1)}


def everything(model, averaging):
    return flat([*model.parameters(), *model.buffers()], torch.float64)


@cache
def in_processes(name):
    """What every rank reports; after the virtual run, whose compiled code the processes inherit."""
    in_one_process(name)
    make, loss, steps, momentum, settings = RUNS[name]

    def work(place):
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum)
        averaging = PeriodicAveraging(model, optimizer, **paced(settings))
        accounts = [averaging.step(local_step(model, optimizer, loss, k, place.rank)) for k in range(steps)]
        return everything(model, averaging), [a for a in accounts if a is not None], averaging.clock.events

    return in_ranks(work, processes=M)


@cache
def in_one_process(name):
    make, loss, steps, momentum, settings = RUNS[name]
    models = [make() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum) for model in models]
    workers = SimulatedWorkers(models, optimizers, **paced(settings))
    accounts = []
    for k in range(steps):
        losses = [local_step(*pair, loss, k, rank) for rank, pair in enumerate(zip(models, optimizers, strict=True))]
        accounts.append(workers.step(losses))
    rounds = [a for a in accounts if a is not None]
    return [
        (plain(everything(model, workers)), [a[rank] for a in rounds], workers.clock.events)
        for rank, model in enumerate(models)
    ]


@pytest.mark.every(4)
@pytest.mark.parametrize("name", NAMES)
def test_virtual_workers_and_real_processes_agree_bit_for_bit(name):
    for rank, (state, accounts, events) in enumerate(in_one_process(name)):
        real_state, real_accounts, real_events = in_processes(name)[rank]
        np.testing.assert_array_equal(state, real_state)
        assert repr(accounts) == repr(real_accounts)  # repr, because nan differs from itself
        assert events == real_events


@pytest.mark.parametrize("name", NAMES)
def test_the_runs_compared_are_not_trivial(name):
    _, _, steps, _, settings = RUNS[name]
    state, accounts, events = in_processes(name)[0]
    taus = [account.tau for account in accounts]

    assert np.isfinite(state).all()
    assert len(accounts) >= 6
    assert len(events) == len(accounts)
    assert sum(taus) == events[-1].steps > steps - 25
    assert [event.bits for event in events] == [sum(account.bits + account.mean_bits) for account in accounts]
    if settings["schedule"] is ADACOMM:
        assert taus[0] == 24 > min(taus)
    else:
        assert set(taus) == {settings["schedule"]}


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "name",
    [
        "whole bfloat16 models",
        "in flight, corrected",
        "in flight, eager",
        "in flight, fragments, qsgd",
        "elastic",
        pytest.param("sampled", marks=pytest.mark.thorough),
    ],
)
def test_resumed_workers_repeat_the_unbroken_run(name):
    make, loss, steps, momentum, settings = RUNS[name]
    saved = None
    for start, stop in ((0, 17), (17, steps)):  # in the middle of a round
        models = [make() for _ in range(M)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.05, momentum=momentum) for model in models]
        workers = SimulatedWorkers(models, optimizers, **paced(settings))
        if saved is not None:
            for model, state in zip(models, saved[0], strict=True):
                model.load_state_dict(state)
            workers.load_state_dict(saved[1])
            for optimizer, state in zip(optimizers, saved[2], strict=True):
                optimizer.load_state_dict(state)
        for k in range(start, stop):
            pairs = enumerate(zip(models, optimizers, strict=True))
            workers.step([local_step(*pair, loss, k, rank) for rank, pair in pairs])
        buffer = io.BytesIO()
        states = [optimizer.state_dict() for optimizer in optimizers]
        torch.save([[model.state_dict() for model in models], workers.state_dict(), states], buffer)
        saved = torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)

    for model, (state, _, events) in zip(models, in_one_process(name), strict=True):
        np.testing.assert_array_equal(plain(everything(model, workers)), state)
        assert workers.clock.events == events


def test_workers_that_start_apart_start_as_the_first():
    models = [torch.nn.Linear(3, 2) for _ in range(3)]
    first = flat(list(models[0].parameters()))

    with pytest.warns(
        UserWarning, match=r"models of ranks 1, 2 differed from that of rank 0 and were.*seed.*checkpoint"
    ):
        SimulatedWorkers(models)

    assert all(torch.equal(flat(list(model.parameters())), first) for model in models)


def test_gradients_by_vmap_are_those_of_the_loop():
    images, labels = digits()
    rounds, m, draw = 30, 6, torch.Generator().manual_seed(0)

    def loss(model, x, y):
        return torch.nn.functional.cross_entropy(model(x), y)

    looped, vmapped = ([SmallNetwork().model() for _ in range(m)] for _ in range(2))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5) for model in (*looped, *vmapped)]
    both = SimulatedWorkers(looped, optimizers[:m], schedule=4), SimulatedWorkers(vmapped, optimizers[m:], schedule=4)
    for _ in range(rounds):
        batch = torch.randint(len(labels), (m, 32), generator=draw)
        losses = vmapped_gradients(vmapped, loss, images[batch], labels[batch])
        for i, model in enumerate(looped):
            model.zero_grad()
            value = loss(model, images[batch[i]], labels[batch[i]])
            value.backward()
            assert losses[i].item() == pytest.approx(value.item(), rel=2.0**-21)  # another order of summation
        for optimizer in optimizers:
            optimizer.step()
        for workers in both:
            workers.step()

    for one, other in zip(looped, vmapped, strict=True):
        assert torch.equal(flat(list(one.parameters())), flat(list(other.parameters())))
    assert not torch.equal(flat(list(looped[0].parameters())), flat(list(SmallNetwork().model().parameters())))


def test_what_cannot_work_is_refused():
    models = [torch.nn.Linear(1, 1) for _ in range(2)]
    optimizer = torch.optim.SGD(models[0].parameters(), lr=0.1)
    with pytest.raises(ValueError, match="one optimizer for each of at least one model; got 1 and 2"):
        SimulatedWorkers(models, [optimizer])
    with pytest.raises(ValueError, match="got 0 and 0"):
        SimulatedWorkers([])
    with pytest.raises(ValueError, match=r"weight is float32 of shape .1, 1. on rank 0 and float32 of shape"):
        SimulatedWorkers([torch.nn.Linear(1, 1), torch.nn.Linear(2, 1)])
    with pytest.raises(ValueError, match="vmap cannot update buffers"):
        vmapped_gradients([torch.nn.BatchNorm1d(2)], lambda model, x: model(x).sum(), torch.ones(1, 3, 2))
