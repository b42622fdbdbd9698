"""Every schedule, outer step and adapter under learning rates of 0, None and tensors, which schedulers change."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds.runtime import Exponential, RuntimeModel
from bounds.schedules import QSR, AdaComm, Decreasing, Increasing, PostLocal, StlSgd
from gpu_validation import SGD, Nesterov, PeriodicAveraging, SimulatedClock
from gpu_validation.averaging.outer import BlockMomentum, HeavyBall
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import Key
from tests.gpu_validation.ranks import in_ranks

M, STEPS = 2, 14
SCHEDULES = {
    "1": 1,
    "3": 3,
    "adacomm": AdaComm(tau_0=4, interval_s=0.01),
    "adacomm, derived": AdaComm(tau_0=4, interval_s=0.01, eta_exponent=1.5, L=2.0, gamma=0.5, cap=8),
    "increasing": Increasing(1, 0.5),
    "decreasing": Decreasing(4, 0.5),
    "qsr": QSR(1, 0.05),
    "qsr with warm-up": QSR(1, 0.05, warmup_steps=4, peak_eta=0.1),
    "post-local": PostLocal(3),
    "stl": StlSgd(2),
    "auto": "auto",
}
OUTERS = {
    "mean": {},
    "momentum": {"outer": BlockMomentum(0.6)},
    "sgd": {"outer": SGD(0.9, 0.3)},
    "nesterov": {"outer": Nesterov(0.7, 0.5)},
    "adam": {"outer": partial(torch.optim.Adam, lr=0.01)},
}
PATHS = {  # multiples of the learning rate before every step
    "warm-up": lambda k: min(1.0, k / 5),
    "decay": lambda k: max(0.0, 1 - k / 9),
    "restarts": lambda k: (1 + math.cos(math.pi * (k % 5) / 4)) / 2,
    "nearly 0": lambda k: 1e-300 if k % 3 else 1.0,
    "always 0": lambda k: 0.0,
    "none": lambda k: None,
}
KINDS = ("number", "tensor", "frozen first group")


class Relative(torch.optim.Optimizer):
    """Chooses its own step size, as Adafactor does: the rate is None, and there are two eps."""

    def __init__(self, params):
        super().__init__(params, {"lr": None, "eps": (1e-30, 1e-3)})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["exp_avg_sq"] = state.get("exp_avg_sq", torch.zeros_like(p)) * 0.5 + p.grad**2
                p -= 0.02 * p.grad / (1 + state["exp_avg_sq"].sqrt())


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def optimizer_of(model, kind, path):
    if path == "none":
        return Relative(model.parameters())
    if kind == "frozen first group":
        return torch.optim.SGD(
            [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}], lr=0.1
        )
    return torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1) if kind == "tensor" else 0.1)


def set_rate(optimizer, factor):
    group = optimizer.param_groups[-1]
    if factor is None:
        return
    if isinstance(group["lr"], torch.Tensor):
        group["lr"].fill_(0.1 * factor)
    else:
        group["lr"] = 0.1 * factor


def loss_of(model, rank, step):
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(10 * step + rank))
    return (model(x) - x.sum(1, keepdim=True)).square().mean()


def clock():
    return SimulatedClock(RuntimeModel(Exponential(0.01), delay_s=0.02), m=M, key=Key(3))


def again_of(model, rank, step):
    def again():
        model.zero_grad()
        loss = loss_of(model, rank, step)
        loss.backward()
        return loss

    return again


@pytest.mark.thorough
@settings(deadline=None, max_examples=40)
@given(st.data())
def test_training_goes_on_whatever_the_learning_rate_does(data):
    schedule, outer, path, kind, scheduler_first, errors = (
        data.draw(st.sampled_from(choices))
        for choices in (list(SCHEDULES), list(OUTERS), list(PATHS), KINDS, (False, True), (False, True))
    )
    chosen = {"schedule": Pacing(SCHEDULES[schedule], clock=clock()), **OUTERS[outer]}
    if errors and schedule == "auto":
        chosen |= {"operator": "auto"}
    models = [network() for _ in range(M)]
    optimizers = [optimizer_of(model, kind, path) for model in models]
    for optimizer in optimizers:
        set_rate(optimizer, PATHS[path](0))
    workers, start = SimulatedWorkers(models, optimizers, **chosen), network().state_dict()
    for k in range(STEPS):
        again = [again_of(model, rank, k) for rank, model in enumerate(models)]
        losses = [closure() for closure in again]
        for optimizer in optimizers:
            optimizer.step()
            if scheduler_first:
                set_rate(optimizer, PATHS[path](k + 1))
        workers.step(losses, again)
        if not scheduler_first:
            for optimizer in optimizers:
                set_rate(optimizer, PATHS[path](k + 1))
    if workers.engine.periods.local_steps:
        workers.average()

    vector = torch.nn.utils.parameters_to_vector(models[0].parameters())
    assert torch.isfinite(vector).all()
    assert vector.abs().max() < 10  # momentum did not explode where the rate was small and rose again
    if path == "always 0" and kind != "frozen first group" and outer not in ("adam",):
        assert all(torch.equal(value, start[name]) for name, value in models[0].state_dict().items())


def test_momentum_moves_nothing_at_a_rate_of_0_and_is_kept():
    rates = iter([(0.1, 0.1), (0.0, 0.1), (0.0, 0.0), (0.2, 0.2), None])
    outer = HeavyBall(0.5, lambda: next(rates), torch.zeros(1))
    theta, moved = torch.zeros(1, dtype=torch.float64), torch.full((1,), -0.1, dtype=torch.float64)

    theta = outer.step(theta, moved)  # u = 1
    assert theta.item() == pytest.approx(-0.1)
    theta = outer.step(theta, moved)  # u = 1.5: the round's own steps had a rate
    assert (theta.item(), outer.momentum.item()) == (pytest.approx(-0.2), pytest.approx(1.5))
    theta = outer.step(theta, 0 * moved)
    assert (theta.item(), outer.momentum.item()) == (pytest.approx(-0.2), pytest.approx(0.75))
    theta = outer.step(theta, moved)  # u = .375 + .5, and -0.1 - 0.2 x 0.375
    assert (theta.item(), outer.momentum.item()) == (pytest.approx(-0.375), pytest.approx(0.875))
    theta = outer.step(theta, moved)  # no rate: in units of movements
    assert (theta.item(), outer.momentum.item()) == (pytest.approx(-0.375 - 0.1 - 0.4375), pytest.approx(0.5375))


def test_the_sum_of_gradients_uses_the_rates_of_the_rounds_own_steps():
    models = [network() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.0) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=3, outer=BlockMomentum(0.5))
    for k, rate in enumerate((0.3, 0.2, 0.1)):
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.param_groups[0]["lr"] = rate
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            optimizer.step()
        if k == 1:
            kept = workers.state_dict()
        workers.step()

    assert kept["workers"][0]["rates"] == [0.0, 0.3]
    # each step counts with the larger of the rates before and after it: .3, .3, .2; the movement is .6
    np.testing.assert_allclose(workers.engine.outer.momentum, 0.6 / (0.8 / 3), rtol=1e-5)


@pytest.mark.parametrize("schedule", ["adacomm", "auto"])
@pytest.mark.parametrize("rate", [-0.1, math.nan, math.inf, torch.ones(2)], ids=repr)
def test_an_invalid_rate_of_any_worker_is_refused(schedule, rate):
    models = [network() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=Pacing(SCHEDULES[schedule], clock=clock()))
    optimizers[1].param_groups[0]["lr"] = rate

    def train():
        for k in range(32):  # the first round of "auto"
            again = [again_of(model, rank, k) for rank, model in enumerate(models)]
            workers.step([closure() for closure in again], again)

    with pytest.raises(ValueError, match=r"rank 1 has .* correct lr in the param_groups of its optimizer"):
        train()


def trained_in_ranks(place):
    """With telemetry and without: the models, and the rates that telemetry kept."""
    results = {}
    for schedule in ("3", "adacomm", "auto"):
        for path in PATHS:
            for outer in ("mean", "momentum") if schedule != "auto" else ("mean",):
                for telemetry in (False, True):
                    model = network()
                    optimizer = optimizer_of(model, "number", path)
                    set_rate(optimizer, PATHS[path](0))
                    averaging = PeriodicAveraging(
                        model,
                        optimizer,
                        schedule=Pacing(SCHEDULES[schedule], clock=clock()),
                        telemetry=telemetry,
                        **OUTERS[outer],
                    )
                    for k in range(STEPS):
                        again = again_of(model, place.rank, k)
                        loss = again()
                        optimizer.step()
                        averaging.step(loss, again)
                        set_rate(optimizer, PATHS[path](k + 1))
                    if averaging.engine.periods.local_steps:
                        averaging.average()
                    vector = torch.nn.utils.parameters_to_vector(model.parameters())
                    results[schedule, path, outer, telemetry] = vector
    return results


@pytest.mark.thorough
def test_telemetry_changes_nothing_in_real_ranks_at_any_learning_rate():
    first, second = in_ranks(trained_in_ranks, processes=2)
    for (schedule, path, outer, telemetry), vector in first.items():
        assert np.isfinite(vector).all()
        assert vector.tobytes() == second[schedule, path, outer, telemetry].tobytes()
        assert vector.tobytes() == first[schedule, path, outer, not telemetry].tobytes()
