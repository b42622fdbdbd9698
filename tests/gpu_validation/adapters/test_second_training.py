"""A training that fails or is interrupted, and then a second one by the same objects: the bits of a plain loop."""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import PeriodicAveraging
from tests.gpu_validation.adapters.runs import (
    LR,
    RANKS,
    SETTINGS,
    STEPS,
    TAU,
    Network,
    as_torchrun,
    batches,
    different,
    outcome,
    plain,
)
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
FAILURES = {"error": (3, RuntimeError), "interrupt": (6, KeyboardInterrupt), "first": (1, ValueError)}
AVERAGED = SETTINGS["in flight"]


class Accident:
    """Raises in a step of the model or in one of the averaging, once."""

    def __init__(self, step, kind):
        self.left, self.kind = step, kind

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            raise self.kind("an accident")


NONE = Accident(0, RuntimeError)
FORWARD, AVERAGING = [NONE], [NONE]


class Failing(Network):
    def forward(self, x, labels):
        FORWARD[0]()
        return super().forward(x, labels)


class FailingAveraging(PeriodicAveraging):
    def step(self, loss=None, closure=None):
        AVERAGING[0]()
        return super().step(loss, closure)


def network():
    model = Failing()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
    return model, optimizer


def again(model, optimizer, train):
    """The outcome of a second training from the same start, after each accident."""
    start, outcomes = {name: value.clone() for name, value in model.state_dict().items()}, {}
    cases = [(name, FORWARD, accident) for name, accident in FAILURES.items()]
    for name, place, accident in [*cases, ("averaging", AVERAGING, (5, RuntimeError))]:
        place[0] = Accident(*accident)
        try:
            train()
        except (RuntimeError, ValueError, KeyboardInterrupt, SystemExit) as error:
            outcomes[name, "raised"] = "accident" in str(error) or isinstance(error, SystemExit)
        place[0] = NONE
        model.load_state_dict(start)
        model.zero_grad()
        optimizer().state.clear()
        outcomes[name] = train()
        model.load_state_dict(start)
        optimizer().state.clear()
    return outcomes


def accelerated(place):
    from accelerate import Accelerator

    from gpu_validation.adapters import accelerated as adapter

    adapter.PeriodicAveraging = FailingAveraging
    as_torchrun(place)
    accelerator = Accelerator(cpu=True)
    inner, plain_optimizer = network()
    model, optimizer = accelerator.prepare(inner, plain_optimizer)
    local = [None]

    def train():
        local[0] = local[0] or adapter.LocalSGD(
            accelerator=accelerator, model=model, local_sgd_steps=TAU, optimizer=optimizer, **AVERAGED
        )
        with local[0] as running:
            for batch in batches(place.rank):
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                optimizer.step()
                running.step(loss)
                optimizer.zero_grad()
        made, local[0] = local[0].averaging, None
        return outcome(made)

    return again(inner, lambda: plain_optimizer, train), model.require_backward_grad_sync


def diloco(place):
    from gpu_validation.adapters import diloco as adapter

    adapter.PeriodicAveraging = FailingAveraging
    inner, optimizer = network()
    model, running = DistributedDataParallel(inner), [None]

    def train():
        running[0] = running[0] or adapter.DiLoCo(model, optimizer, sync_every=TAU, **AVERAGED)
        with running[0]:
            for batch in batches(place.rank):
                optimizer.zero_grad()
                model(**batch)["loss"].backward()
                optimizer.step()
        made, running[0] = running[0].averaging, None
        return outcome(made)

    outcomes = again(inner, lambda: optimizer, train)
    return outcomes, model.require_backward_grad_sync and not optimizer._optimizer_step_post_hooks


def hugging_face(place, folder):
    from gpu_validation.adapters import hugging_face as adapter
    from tests.gpu_validation.adapters.hugging_face_runs import AveragingCallback, trainer_of

    adapter.PeriodicAveraging = FailingAveraging
    as_torchrun(place)
    trainer = trainer_of(folder)
    trainer.model.__class__ = Failing
    own = trainer.training_step
    callback = AveragingCallback(trainer, schedule=TAU, **AVERAGED)
    trainer.add_callback(callback)

    def train():
        trainer.train()
        return outcome(callback.averaging)

    # the Trainer makes an optimizer's wrapper and the schedule anew, and keeps the optimizer
    outcomes = again(trainer.model, lambda: trainer.optimizer, train)
    wrapped = trainer.model_wrapped
    return outcomes, trainer.training_step == own and wrapped.require_backward_grad_sync


def lightning(place):
    from lightning import Trainer
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import DDPStrategy
    from torch.utils.data import DataLoader

    from gpu_validation.adapters import lightning as adapter
    from tests.gpu_validation.adapters.lightning_runs import Module

    adapter.PeriodicAveraging = FailingAveraging
    as_torchrun(place)
    module, callback = Module(), adapter.AveragingCallback(schedule=TAU, **AVERAGED)
    module.network.__class__ = Failing

    def train():
        trainer = Trainer(
            accelerator="cpu",
            devices=RANKS,
            strategy=DDPStrategy(cluster_environment=LightningEnvironment(), process_group_backend="gloo"),
            max_steps=STEPS,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            callbacks=[callback],
        )
        trainer.strategy._launcher = None
        trainer.fit(module, DataLoader(batches(place.rank), batch_size=None))
        return outcome(callback.averaging)

    return again(module, lambda: torch.optim.SGD([torch.zeros(1)]), train), not callback._losses


def checked(work):
    reports = in_ranks(lambda place: (plain(place, AVERAGED), work(place)), processes=RANKS)
    for expected, (outcomes, left) in reports:
        assert left
        for name in (*FAILURES, "averaging"):
            assert outcomes[name, "raised"], name
            assert not different(expected, outcomes[name]), name


def test_diloco_trains_again():
    checked(diloco)


@pytest.mark.thorough
def test_accelerate_trains_again():
    checked(accelerated)


@pytest.mark.thorough
def test_transformers_trains_again(tmp_path):
    checked(lambda place: hugging_face(place, tmp_path / str(place.rank)))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Lightning, about the small run
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's, about Lightning
def test_lightning_trains_again():
    checked(lightning)
