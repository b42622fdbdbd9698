"""Lightning's Trainer: the same bits as a plain loop, inside the wrapper that averages gradients."""

import pytest

from ..ranks import in_ranks
from .runs import RANKS, SETTINGS, STEPS, TAU, Late, Never, as_torchrun, auto, different, plain

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of Lightning, about the small run
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # torch's, about Lightning
]


def compared(names, wrong):
    """Of every rank: the named runs, by hand and adapted, one of each wrong adapter, and one that accumulates."""
    from gpu_validation.adapters import lightning

    from .lightning_runs import adapted

    def work(place):
        as_torchrun(place)
        runs = {}
        for name in names:
            settings, schedule = (SETTINGS[name], TAU) if name in SETTINGS else ({}, auto())
            clip = 0.05 if name == "clipped" else None
            by_hand = plain(place, settings, schedule, clip)
            schedule = schedule if name in SETTINGS else auto()
            runs[name] = by_hand, adapted(place, settings, schedule, gradient_clip_val=clip)
        runs["one device"] = runs["compressed"][0], adapted(place, SETTINGS["compressed"], wrapped=False)
        runs["accumulated"] = adapted(place, {}, auto(), accumulate_grad_batches=3, max_epochs=1)
        for averaging in wrong:
            lightning.PeriodicAveraging = averaging
            runs[averaging.__name__] = runs["compressed"][0], adapted(place, SETTINGS["compressed"])
        return runs

    return in_ranks(work, processes=RANKS)


@pytest.fixture(scope="module")
def reports():
    return compared(["compressed"], [Late])


@pytest.fixture(scope="module")
def all_reports():
    return compared([*SETTINGS, "auto", "clipped"], [Never])


def assert_equal(reports, name):
    for runs in reports:
        assert not different(*runs[name])
        assert runs[name][1][1] > 0
        assert runs[name][1][2] == STEPS
    assert reports[0][name][1][0].tobytes() == reports[1][name][1][0].tobytes()


@pytest.mark.parametrize("name", ["compressed", "one device"])
def test_the_adapter_gives_the_bits_and_bytes_of_a_plain_loop(name, reports):
    assert_equal(reports, name)


def test_an_adapter_that_averages_late_would_be_seen(reports):
    assert all(different(*runs["Late"]) for runs in reports)


def test_accumulated_batches_make_one_step(reports):
    (model, _, steps, _), (other, *_) = (runs["accumulated"] for runs in reports)
    assert steps == 4  # 3 + 3 + 3 + 1 batches
    assert model.tobytes() == other.tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*SETTINGS, "auto", "clipped"])
def test_so_it_does_with_every_setting(name, all_reports):
    assert_equal(all_reports, name)


@pytest.mark.thorough
def test_clipping_changes_what_is_compared_and_no_averaging_too(all_reports):
    assert different(all_reports[0]["auto"][0], all_reports[0]["clipped"][0])
    assert all(different(*runs["Never"]) for runs in all_reports)
