"""Trainings that the library itself starts again with smaller batches: the bits of an undisturbed run."""

import gc

import pytest
import torch

from ..ranks import in_ranks
from .runs import LR, RANKS, SETTINGS, STEPS, TAU, Network, as_torchrun, batches, different, outcome, plain

pytestmark = pytest.mark.timeout(200)
OUT_OF_MEMORY = "CUDA out of memory."
CASES = ("compressed", "two shots", "in flight")
FAILING_STEPS = (1, 3, 6)  # in the first round, at its last step's batch, and in a later one


class OutOfMemory:
    """Raises at the given calls what a GPU without memory raises."""

    def __init__(self, *calls):
        self.calls, self.made = calls, 0

    def __call__(self):
        self.made += 1
        if self.made in self.calls:
            raise RuntimeError(OUT_OF_MEMORY)


def start_again(model, optimizer, start):
    """Begin with the parameters and the optimizer of the first time, as the plain run does."""
    model.load_state_dict(start)
    optimizer.state.clear()
    model.zero_grad()


def with_transformers(place, name, accident, folder):
    from .hugging_face_runs import AveragingCallback, OwnBatches, TrainerCallback, trainer_of

    class StartAgain(TrainerCallback):
        def on_train_begin(self, args, state, control, **event):
            start_again(trainer.model, trainer.optimizer, start)

    class Failing(OwnBatches):
        def training_step(self, model, inputs, num_items_in_batch=None):
            accident()
            return super().training_step(model, inputs, num_items_in_batch)

    trainer = trainer_of(folder / str(place.rank), auto_find_batch_size=True)
    trainer.__class__ = Failing
    start = {key: value.clone() for key, value in trainer.model.state_dict().items()}
    trainer.add_callback(StartAgain())
    callback = AveragingCallback(trainer, schedule=TAU, **SETTINGS[name])
    trainer.add_callback(callback)
    own, size = trainer.training_step, trainer._train_batch_size
    trainer.train()
    assert trainer._train_batch_size < size, "the Trainer has started again"
    assert trainer.training_step == own
    return outcome(callback.averaging)


def with_accelerate(place, name, accident, folder):
    from accelerate import Accelerator
    from accelerate.utils import find_executable_batch_size

    from gpu_validation.adapters.accelerated import LocalSGD

    accelerator, sizes = Accelerator(cpu=True), []

    @find_executable_batch_size(starting_batch_size=16)
    def train(batch_size):
        sizes.append(batch_size)
        accelerator.free_memory()
        model = Network()
        optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
        model, optimizer = accelerator.prepare(model, optimizer)
        with LocalSGD(accelerator, model, TAU, optimizer=optimizer, **SETTINGS[name]) as running:
            for batch in batches(place.rank):
                accident()
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                optimizer.step()
                running.step(loss)
                optimizer.zero_grad()
        return outcome(running.averaging)

    result = train()
    assert len(sizes) == 1 + len(accident.calls)
    return result


def with_accelerate_and_one_averaging(place, name, accident, folder):
    """The model and its ``LocalSGD`` are made outside of what is tried again."""
    from accelerate import Accelerator
    from accelerate.utils import find_executable_batch_size

    from gpu_validation.adapters.accelerated import LocalSGD

    accelerator, inner = Accelerator(cpu=True), Network()
    start = {key: value.clone() for key, value in inner.state_dict().items()}
    model, optimizer = accelerator.prepare(inner, torch.optim.SGD(inner.parameters(), lr=LR, momentum=0.5))
    running = LocalSGD(accelerator, model, TAU, optimizer=optimizer, **SETTINGS[name])

    @find_executable_batch_size(starting_batch_size=16)
    def train(batch_size):
        start_again(inner, optimizer.optimizer, start)
        with running:
            for batch in batches(place.rank):
                accident()
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                optimizer.step()
                running.step(loss)
                optimizer.zero_grad()
        return outcome(running.averaging)

    return train()


def with_lightning(place, name, accident, folder):
    """One Trainer fits again after it has failed, and once more after it has trained."""
    from . import lightning_runs

    class Module(lightning_runs.Module):
        def training_step(self, batch, batch_idx):
            accident()
            return super().training_step(batch, batch_idx)

    module, callback = Module(), lightning_runs.AveragingCallback(schedule=TAU, **SETTINGS[name])
    start = {key: value.clone() for key, value in module.state_dict().items()}

    def trainer():
        made = lightning_runs.trainer_of(callback)
        made.strategy._launcher = None  # the ranks are there
        return made

    def fit():
        module.load_state_dict(start)
        module.zero_grad()
        loader = lightning_runs.DataLoader(batches(place.rank), batch_size=None)
        trainer().fit(module, loader)

    for _ in accident.calls:
        with pytest.raises(RuntimeError, match=OUT_OF_MEMORY):
            fit()
    fit()
    first = outcome(callback.averaging)
    fit()
    second = outcome(callback.averaging)
    assert torch.equal(first[0], second[0])
    assert first[1:] == second[1:]
    return first


def with_lightnings_tuner(place, name, accident, folder):
    """The Tuner tries learning rates with the Trainer and its callback, then the Trainer fits."""
    from lightning.pytorch.tuner import Tuner

    from . import lightning_runs

    class Module(lightning_runs.Module):
        def __init__(self):
            super().__init__()
            self.lr = LR

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.5)

    module, callback = Module(), lightning_runs.AveragingCallback(schedule=TAU, **SETTINGS[name])
    trainer = lightning_runs.trainer_of(callback, default_root_dir=str(folder))
    trainer.strategy._launcher = None  # the ranks are there

    def loader():
        return lightning_runs.DataLoader(batches(place.rank), batch_size=None)

    Tuner(trainer).lr_find(module, loader(), num_training=5, update_attr=False)
    assert module.lr == LR
    trainer.fit(module, loader())
    return outcome(callback.averaging)


def checked(train, folder, cases=CASES):
    def work(place):
        as_torchrun(place)
        gc.freeze()
        runs = {}
        for name, step in zip(cases, FAILING_STEPS[-len(cases) :], strict=True):
            calls = (step, step + 2) if step > 1 else (step,)  # out of memory once, or twice
            runs[name] = plain(place, SETTINGS[name]), train(place, name, OutOfMemory(*calls), folder)
        return runs

    for runs in in_ranks(work, processes=RANKS):
        for name, (expected, found) in runs.items():
            assert found[2] == STEPS
            assert not different(expected, found), name


@pytest.mark.thorough
def test_the_trainer_finds_a_batch_size(tmp_path):
    from . import hugging_face_runs  # noqa: F401  imported once, before the ranks

    checked(with_transformers, tmp_path)


@pytest.mark.thorough
def test_accelerate_finds_a_batch_size(tmp_path):
    checked(with_accelerate, tmp_path)


def test_accelerate_finds_a_batch_size_with_one_averaging_for_all_attempts(tmp_path):
    checked(with_accelerate_and_one_averaging, tmp_path, CASES[-1:])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Lightning, about the small run
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's, about Lightning
def test_lightning_fits_again_after_it_ran_out_of_memory_and_after_it_has_trained(tmp_path):
    from . import lightning_runs  # noqa: F401

    checked(with_lightning, tmp_path)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Lightning, about the small run
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's, about Lightning
def test_lightning_trains_after_its_tuner_has_tried_learning_rates(tmp_path):
    from . import lightning_runs  # noqa: F401

    checked(with_lightnings_tuner, tmp_path)
