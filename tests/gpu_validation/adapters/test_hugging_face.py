"""transformers' Trainer: the same bits as a plain loop, inside the wrapper that averages gradients."""

import gc

import pytest

from ..ranks import in_ranks
from .runs import RANKS, SETTINGS, STEPS, TAU, Late, Never, as_torchrun, auto, batches, different, outcome, plain

pytestmark = pytest.mark.timeout(120)


def compared(names, wrong, folder):
    """Of every rank: the named runs, by hand and adapted, and one of each wrong adapter."""
    from gpu_validation.adapters import hugging_face

    from .hugging_face_runs import adapted

    def work(place):
        as_torchrun(place)
        gc.freeze()  # every training collects garbage: not among what the parent has imported
        runs = {}
        for name in names:
            settings, schedule = (SETTINGS[name], TAU) if name in SETTINGS else ({}, auto())
            clip = 0.05 if name == "clipped" else None
            by_hand = plain(place, settings, schedule, clip)
            schedule = schedule if name in SETTINGS else auto()
            runs[name] = by_hand, adapted(folder / str(place.rank), settings, schedule, max_grad_norm=clip or 0.0)
        for averaging in wrong:
            hugging_face.PeriodicAveraging = averaging
            runs[averaging.__name__] = runs["compressed"][0], adapted(folder, SETTINGS["compressed"])
        return runs

    return in_ranks(work, processes=RANKS)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return compared(["compressed"], [Late], tmp_path_factory.mktemp("trainer"))


@pytest.fixture(scope="module")
def all_reports(tmp_path_factory):
    return compared([*SETTINGS, "auto", "clipped"], [Never], tmp_path_factory.mktemp("trainers"))


def assert_equal(reports, name):
    for runs in reports:
        assert not different(*runs[name])
        assert runs[name][1][1] > 0
        assert runs[name][1][2] == STEPS
    assert reports[0][name][1][0].tobytes() == reports[1][name][1][0].tobytes()


def test_the_adapter_gives_the_bits_and_bytes_of_a_plain_loop(reports):
    assert_equal(reports, "compressed")


def test_an_adapter_that_averages_late_would_be_seen(reports):
    assert all(different(*runs["Late"]) for runs in reports)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*SETTINGS, "auto", "clipped"])
def test_so_it_does_with_every_setting(name, all_reports):
    assert_equal(all_reports, name)


@pytest.mark.thorough
def test_clipping_changes_what_is_compared_and_no_averaging_too(all_reports):
    assert different(all_reports[0]["auto"][0], all_reports[0]["clipped"][0])
    assert all(different(*runs["Never"]) for runs in all_reports)


@pytest.mark.thorough
def test_accumulated_batches_make_one_step_and_the_round_ends_before_a_training_that_is_stopped(tmp_path):
    from .hugging_face_runs import AveragingCallback, StopAt, Trainer, trainer_of

    def work(place):
        as_torchrun(place)
        trainer = trainer_of(
            tmp_path / str(place.rank), gradient_accumulation_steps=2, logging_strategy="steps", logging_steps=1
        )
        callback = AveragingCallback(trainer, schedule=auto())
        trainer.add_callback(callback)
        trainer.add_callback(StopAt(3))
        trainer.train()
        own = trainer.training_step.__func__ is Trainer.training_step
        return own, callback.averaging.total_steps, outcome(callback.averaging)[0]

    (own, steps, model), (_, _, other) = in_ranks(work, processes=RANKS)
    assert own
    assert steps == 3
    assert model.tobytes() == other.tobytes()


@pytest.mark.thorough
def test_without_wrapper_and_launcher_the_script_divides_the_data_itself(tmp_path):
    from .hugging_face_runs import AveragingCallback, DataLoader, OwnBatches, trainer_of

    def work(place):
        class Own(OwnBatches):
            def get_train_dataloader(self):
                return DataLoader(batches(place.rank), batch_size=None)

        trainer = trainer_of(tmp_path / str(place.rank))
        trainer.__class__ = Own
        callback = AveragingCallback(trainer, schedule=TAU)
        trainer.add_callback(callback)
        trainer.train()
        assert trainer.model_wrapped is trainer.model
        return plain(place, {}), outcome(callback.averaging)

    assert not any(different(*runs) for runs in in_ranks(work, processes=RANKS))
