"""Ranks that run out of data: means over those that are left, one model at the end, real and simulated alike."""

import numpy as np
import pytest
import torch

from bounds.runtime import Constant, RuntimeModel, TwoShot
from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange import parts
from gpu_validation.averaging.membership.parts import All, Uneven
from gpu_validation.averaging.merge.rules import Blocking, Corrected, Delayed, Eager, Overwrite
from gpu_validation.averaging.mixing import Sampled, ring
from gpu_validation.averaging.outer import Nesterov
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.step_check import UnevenSteps
from operators import EF21, QSGD, ErrorFeedback, Key, ScaledSign, TopK
from operators.random import normal
from operators.summed import SharedScale
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
ETA, D, TAU, KEY = 0.25, 23, 3, Key(1)
STEPS = (5, 0, 11)  # of each rank: within a round, none at all, within another one
SETTINGS = {
    "whole models": {},
    "gather": {"operator": QSGD(levels=4)},
    "two shots": {"exchange": parts.TwoShot(QSGD(levels=4), QSGD(levels=16))},
    "sums": {"operator": SharedScale()},
    "feedback, two shots": {"exchange": parts.TwoShot(ErrorFeedback(ScaledSign()))},
    "feedback with receivers": {"operator": EF21(TopK(fraction=0.5))},
    "outer": {"outer": Nesterov(0.7, 0.5)},
    "adaptive": {"schedule": AdaComm(tau_0=3, interval_s=4.0, gamma=0.7)},
    "corrected": {"merge": Corrected(delay=2)},
    "overwrite": {"merge": Overwrite(delay=1), "outer": Nesterov(0.7, 0.5)},
    "delayed": {"merge": Delayed(), "operator": QSGD(levels=4)},
    "fragments": {"merge": Corrected(delay=1, fragments=2), "operator": ErrorFeedback(ScaledSign())},
}


class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(D))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.register_buffer("statistic", torch.zeros(3))


def clock(m):
    return SimulatedClock(RuntimeModel(Constant(1.0), communication=TwoShot(0.01, 1e3)), m=m, key=Key(8))


def gradient(rank, step):
    return torch.from_numpy(normal(Key(2, step=step, rank=rank), D).astype(np.float32))


def local_step(model, optimizer, rank, step):
    model.x.grad = gradient(rank, step)
    optimizer.step()
    model.seen += 1
    model.statistic += rank + step
    return float(model.x.detach().square().sum())


def settings_of(m, given):
    settings = {"schedule": TAU, "key": KEY, "membership": Uneven()} | given
    return settings | {"schedule": Pacing(settings["schedule"], clock=clock(m))}


def real(place, steps, given, end="leave"):
    model = Point()
    optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
    averaging = PeriodicAveraging(model, optimizer, **settings_of(place.size, given))
    accounts = []
    for step in range(steps[place.rank]):
        account = averaging.step(local_step(model, optimizer, place.rank, step))
        accounts += [account.bits] if account else []
    getattr(averaging, end)()
    transport = averaging.transport
    sent = transport.payload_bytes, transport.received_bytes, transport.predicted_bytes
    return model.x, model.seen, model.statistic, averaging.total_steps, sent, accounts


def simulated(steps, given):
    m = len(steps)
    models = [Point() for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in models]
    workers = SimulatedWorkers(models, optimizers, **settings_of(m, given))
    for step in range(max(steps) + 1):
        for rank in range(m):
            if steps[rank] == step:
                workers.leave(rank)
        if step < max(steps):
            workers.step([local_step(models[r], optimizers[r], r, step) if step < steps[r] else None for r in range(m)])
    return models, workers


def check_alike(given, steps=STEPS):
    models, workers = simulated(steps, given)
    results = in_ranks(lambda place: real(place, steps, given), len(steps))
    for model, (x, seen, statistic, total, *_) in zip(models, results, strict=True):
        assert np.array_equal(x, model.x.detach().numpy())
        assert np.array_equal(x, results[0][0])
        assert np.abs(x).max() > 0
        assert (seen, total) == (model.seen, workers.engine.periods.total_steps)
        assert np.array_equal(statistic, model.statistic.numpy())
    sent, received, predicted = (sum(result[4][i] for result in results) for i in range(3))
    assert sent == received == predicted / len(steps)  # each rank predicts what all send


@pytest.mark.parametrize("name", ["whole models", "gather", "fragments"])
def test_real_ranks_do_what_simulated_ones_do(name):
    check_alike(SETTINGS[name])


def leaving():
    """Every setting with the usual numbers of steps and with one of the others in turn; nightly with all."""
    for row, name in enumerate(SETTINGS):
        for column, steps in enumerate([(7, 7, 7), (0, 0, 4), (6, 3, 9), STEPS]):
            tier = pytest.mark.thorough if steps == STEPS or row % 3 == column else pytest.mark.slow
            yield pytest.param(name, steps, marks=tier)


@pytest.mark.parametrize(("name", "steps"), list(leaving()))
def test_real_ranks_do_what_simulated_ones_do_whoever_leaves_when(name, steps):
    check_alike(SETTINGS[name], [max(count, 1) for count in steps] if name == "adaptive" else steps)


def test_a_rule_for_losses_wants_the_first_one_of_every_rank():
    with pytest.raises(ValueError, match="needs a loss"):
        simulated(STEPS, SETTINGS["adaptive"])


def test_means_are_over_those_that_have_made_steps():
    """Whole models by hand: a rank counts until what it has done has been averaged, and then no more."""
    models, _ = simulated(STEPS, {})
    theta, made = np.zeros(D), [0] * len(STEPS)
    for end in (3, 6, 9, 12):
        ends = {}
        for rank, steps in enumerate(STEPS):
            x = theta.copy()
            for step in range(made[rank], min(end, steps)):
                x -= ETA * gradient(rank, step).double().numpy()
            if min(end, steps) > made[rank] or end <= steps:
                ends[rank] = x
            made[rank] = min(end, steps)
        theta = np.mean(list(ends.values()), axis=0)
    for model in models:
        assert np.allclose(model.x.detach().numpy(), theta, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_leaving_together_is_averaging_at_the_end(name):
    """Ranks with as many steps each end as by average(), also within a round; only the step counts are sent besides."""
    given = SETTINGS[name]
    models, workers = simulated((7, 7, 7), given)
    straight = [Point() for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in straight]
    averaging = SimulatedWorkers(straight, optimizers, **settings_of(3, given) | {"membership": All()})
    for step in range(7):
        averaging.step([local_step(straight[r], optimizers[r], r, step) for r in range(3)])
    if "merge" not in given:  # whose rounds end where they would have
        averaging.average()
        assert workers.engine.periods.total_steps == averaging.engine.periods.total_steps == 7
        for left, stayed in zip(models, straight, strict=True):
            assert torch.equal(left.x, stayed.x)
            assert torch.equal(left.seen, stayed.seen)
    assert all(torch.equal(model.x, models[0].x) for model in models)


def test_steps_in_flight_are_all_kept_by_the_corrected_merge():
    """Without an outer step every rank's movements are averaged once each, whenever it leaves."""
    models, _ = simulated((7, 7, 7), {"merge": Corrected(delay=2)})
    mean = sum(gradient(rank, step).double() for rank in range(3) for step in range(7)) / 3
    assert torch.allclose(models[0].x.detach().double(), -ETA * mean, rtol=0, atol=1e-5)


def test_ranks_that_go_on_must_be_equally_far():
    def work(place):
        model = Point()
        averaging = PeriodicAveraging(model, schedule=8, membership=Uneven())
        for _ in range(3 + place.rank):
            averaging.step()
        with pytest.raises(UnevenSteps, match=r"equally many local steps; got \[3, 4\]"):
            averaging.average()

    in_ranks(work, 2)


@pytest.mark.parametrize(
    "given",
    [
        {"mixing": ring(3)},
        {"mixing": Sampled(2, Key(0))},
        {"merge": Blocking(optimizer_state="average")},
        {"merge": Eager()},
        {"merge": Corrected(), "schedule": AdaComm(tau_0=3, interval_s=4.0)},
    ],
)
def test_what_does_not_go_together_is_refused_in_one_sentence(given):
    with pytest.raises(ValueError, match="Uneven does not work with") as refusal:
        simulated((1, 1, 1), given)
    assert "\n" not in str(refusal.value)


def test_leaving_needs_the_option_and_is_done_once():
    models = [Point(), Point()]
    with pytest.raises(ValueError, match=r"needs membership=Uneven\(\): give it on all ranks"):
        SimulatedWorkers(models, schedule=2).leave(0)
    workers = SimulatedWorkers(models, schedule=2, membership=Uneven())
    workers.leave(1)
    for rank in (1, 2):
        with pytest.raises(ValueError, match=rf"once; got rank {rank}: choose from \[0\]"):
            workers.leave(rank)
