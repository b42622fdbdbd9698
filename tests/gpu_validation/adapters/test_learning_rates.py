"""Every adapter under learning rates of 0, None and tensors, which schedulers change: the bits of a plain loop."""

import gc

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from bounds.schedules import AdaComm
from gpu_validation import PeriodicAveraging
from gpu_validation.averaging.outer import BlockMomentum
from tests.gpu_validation.adapters.runs import (
    LR,
    RANKS,
    STEPS,
    TAU,
    Network,
    as_torchrun,
    auto,
    batches,
    different,
    outcome,
)
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)

MULTIPLES = {  # of the learning rate, before every step
    "warm-up": lambda k: min(1.0, k / 3),
    "decay": lambda k: max(0.0, 1 - k / 6),
    "tensor": lambda k: min(1.0, k / 3),
    "frozen first group": lambda k: max(0.0, 1 - k / 6),
    "none": None,
}
CASES = {
    "4": lambda: (TAU, {}),
    "adacomm": lambda: (auto(AdaComm(tau_0=4, interval_s=0.01)), {}),
    "auto": lambda: (auto(), {}),
    "momentum": lambda: (TAU, {"outer": BlockMomentum(0.6)}),
    "telemetry": lambda: (TAU, {"telemetry": True}),
}
# every path with two cases, every case with two paths
FEW = [(path, [*CASES][(i + shift) % len(CASES)]) for shift in (0, 2) for i, path in enumerate(MULTIPLES)]


class OwnStepSize(torch.optim.Optimizer):
    """Has no learning rate, as Adafactor with relative steps."""

    def __init__(self, params):
        super().__init__(params, {"lr": None})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:  # Lightning gives one
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                p -= 0.02 * p.grad / (1 + p.grad.abs())
        return loss


class NoScheduler:
    """Changes no learning rate; libraries ask for one."""

    def step(self):
        pass

    def get_last_lr(self):
        return [0.0]

    def state_dict(self):
        return {}


def optimizer_of(model, path):
    if path == "none":
        return OwnStepSize(model.parameters())
    if path == "frozen first group":
        first, *others = model.parameters()
        groups = [{"params": [first], "lr": 0.0}, {"params": others}]
        return torch.optim.SGD(groups, lr=LR, momentum=0.5)
    rate = torch.tensor(LR) if path == "tensor" else LR
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.5)


def scheduler_of(optimizer, path):
    if path == "none":
        return NoScheduler()
    return torch.optim.lr_scheduler.LambdaLR(optimizer, MULTIPLES[path])


def by_hand(place, path, case, optimizer=optimizer_of, scheduler=scheduler_of, scheduler_first=False):
    schedule, settings = CASES[case]()
    model = Network()
    optimizer = optimizer(model, path)
    rates = scheduler(optimizer, path)
    averaging = PeriodicAveraging(model, optimizer, schedule=schedule, **settings)
    for batch in batches(place.rank):

        def closure(batch=batch):
            loss = model(**batch)["loss"]
            loss.backward()
            return loss

        optimizer.zero_grad()
        loss = closure()
        optimizer.step()
        if scheduler_first:
            rates.step()
        averaging.step(loss, closure)
        if not scheduler_first:
            rates.step()
    averaging.average()
    return outcome(averaging)


def with_diloco(place, path, case):
    from gpu_validation.adapters.diloco import DiLoCo

    schedule, settings = CASES[case]()
    model = Network()
    optimizer = optimizer_of(model, path)
    rates, wrapped = scheduler_of(optimizer, path), DistributedDataParallel(model)
    with DiLoCo(wrapped, optimizer, sync_every=np.int64(schedule), **settings) as running:
        for batch in batches(place.rank):
            optimizer.zero_grad()
            wrapped(**batch)["loss"].backward()
            optimizer.step()
            rates.step()
    return outcome(running.averaging)


def with_accelerate(place, path, case):
    from accelerate import Accelerator

    from gpu_validation.adapters.accelerated import LocalSGD

    schedule, settings = CASES[case]()
    schedule = np.int32(schedule) if isinstance(schedule, int) else schedule
    accelerator, model = Accelerator(cpu=True), Network()
    model, optimizer = accelerator.prepare(model, optimizer_of(model, path))
    rates = scheduler_of(optimizer.optimizer, path)
    with LocalSGD(accelerator, model, schedule, optimizer=optimizer, **settings) as running:
        for batch in batches(place.rank):

            def closure(batch=batch):
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                return loss

            loss = closure()
            optimizer.step()
            running.step(loss, closure)
            optimizer.zero_grad()
            rates.step()
    return outcome(running.averaging)


def with_transformers(place, path, case, folder, optimizer=optimizer_of, scheduler=scheduler_of, **arguments):
    from tests.gpu_validation.adapters.hugging_face_runs import AveragingCallback, trainer_of

    schedule, settings = CASES[case]()
    trainer = trainer_of(folder / str(place.rank), **arguments)
    trainer.optimizer = optimizer(trainer.model, path)
    trainer.lr_scheduler = scheduler(trainer.optimizer, path) if scheduler else None
    callback = AveragingCallback(trainer, schedule=schedule, **settings)
    trainer.add_callback(callback)
    trainer.train()
    return outcome(callback.averaging)


def with_lightning(place, path, case):
    from tests.gpu_validation.adapters import lightning_runs

    class Module(lightning_runs.Module):
        def configure_optimizers(self):
            optimizer = optimizer_of(self, path)
            if path == "none":
                return optimizer
            rates = {"scheduler": scheduler_of(optimizer, path), "interval": "step"}
            return {"optimizer": optimizer, "lr_scheduler": rates}

    schedule, settings = CASES[case]()
    return lightning_runs.adapted(place, settings, schedule, module=Module())


def checked(adapted, pairs, scheduler_first=False):
    def work(place):
        as_torchrun(place)
        gc.freeze()
        return {
            (path, case): (by_hand(place, path, case, scheduler_first=scheduler_first), adapted(place, path, case))
            for path, case in pairs
        }

    for runs in in_ranks(work, processes=RANKS):
        for name, (expected, found) in runs.items():
            assert np.isfinite(expected[0]).all(), name
            assert not different(expected, found), name
            assert found[2] == STEPS, name


@pytest.mark.thorough
def test_diloco_trains_at_any_learning_rate():
    checked(with_diloco, [pair for pair in FEW if pair[1] not in ("adacomm", "auto")])


@pytest.mark.thorough
def test_accelerate_trains_at_any_learning_rate():
    checked(with_accelerate, FEW)


@pytest.mark.thorough
def test_transformers_trains_at_any_learning_rate(tmp_path):
    from tests.gpu_validation.adapters import hugging_face_runs  # noqa: F401  imported once, before the ranks

    checked(lambda place, path, case: with_transformers(place, path, case, tmp_path), FEW)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Lightning, about the small run
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's, about Lightning
def test_lightning_trains_at_any_learning_rate():
    from tests.gpu_validation.adapters import lightning_runs  # noqa: F401

    checked(with_lightning, FEW, scheduler_first=True)


@pytest.mark.thorough
def test_the_trainers_own_warm_up_and_adafactor_train_with_every_schedule(tmp_path):
    from transformers import get_scheduler
    from transformers.optimization import Adafactor, AdafactorSchedule

    from tests.gpu_validation.adapters import hugging_face_runs  # noqa: F401

    def linear(optimizer, path):
        return get_scheduler("linear", optimizer, num_warmup_steps=3, num_training_steps=STEPS)

    def adafactor(model, path):
        return Adafactor(model.parameters(), lr=None, relative_step=True, warmup_init=True)

    def chosen(optimizer, path):
        return AdafactorSchedule(optimizer)

    def work(place):
        as_torchrun(place)
        gc.freeze()
        runs = {}
        for case in CASES:
            runs["warm-up", case] = (
                by_hand(place, "warm-up", case, scheduler=linear),
                with_transformers(place, "warm-up", case, tmp_path, scheduler=None, warmup_steps=3),
            )
            runs["adafactor", case] = (
                by_hand(place, "none", case, adafactor, chosen),
                with_transformers(place, "none", case, tmp_path, adafactor, chosen),
            )
        return runs

    for runs in in_ranks(work, processes=RANKS):
        for name, (expected, found) in runs.items():
            assert np.isfinite(expected[0]).all(), name
            assert not different(expected, found), name


@pytest.mark.parametrize("value", [True, np.bool_(True), 2.5, "4", None], ids=repr)
def test_what_is_no_number_of_steps_is_refused_by_its_name(value):
    from types import SimpleNamespace

    from gpu_validation.adapters.accelerated import LocalSGD
    from gpu_validation.adapters.diloco import DiLoCo

    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    with pytest.raises(ValueError, match="sync_every must be a number of local steps"):
        DiLoCo(model, optimizer, sync_every=value)
    if not isinstance(value, str):
        with pytest.raises(ValueError, match="local_sgd_steps must be a whole number, a rule"):
            LocalSGD(SimpleNamespace(num_processes=1), model, value)
