"""DiLoCo around an optimizer: the same bits as a plain loop that calls the averaging itself."""

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import Nesterov
from gpu_validation.adapters import diloco
from gpu_validation.adapters.diloco import DiLoCo

from ..ranks import in_ranks
from .runs import LR, RANKS, SETTINGS, STEPS, TAU, Late, Network, Never, batches, different, outcome, plain

pytestmark = pytest.mark.timeout(120)


def compared(place, settings, wrap=False):
    """By hand, and adapted."""
    by_hand = plain(place, settings)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
    trained = DistributedDataParallel(model) if wrap else model
    with DiLoCo(trained, optimizer, sync_every=TAU, **settings) as running:
        for batch in batches(place.rank):
            optimizer.zero_grad()
            trained(**batch)["loss"].backward()
            optimizer.step()
    return by_hand, outcome(running.averaging)


@pytest.fixture(scope="module")
def reports():
    def work(place):
        runs = {name: compared(place, settings) for name, settings in SETTINGS.items()}
        runs["wrapped"] = compared(place, SETTINGS["two shots"], wrap=True)
        for wrong in (Late, Never):
            diloco.PeriodicAveraging = wrong
            runs[wrong.__name__] = compared(place, SETTINGS["two shots"])
        return runs

    return in_ranks(work, processes=RANKS)


@pytest.mark.parametrize("name", [*SETTINGS, "wrapped"])
def test_the_adapter_gives_the_bits_and_bytes_of_a_plain_loop(name, reports):
    for runs in reports:
        assert not different(*runs[name])
        assert runs[name][1][1] > 0
        assert runs[name][1][2] == STEPS
    assert reports[0][name][1][0].tobytes() == reports[1][name][1][0].tobytes()


@pytest.mark.parametrize("name", ["Late", "Never"])
def test_an_adapter_that_averages_late_or_never_would_be_seen(name, reports):
    assert all(different(*runs[name]) for runs in reports)


def test_a_whole_last_round_is_not_followed_by_another_outer_step_and_later_steps_do_not_count():
    def work(place):
        model = Network()
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        with DiLoCo(model, optimizer, outer=Nesterov(0.7, 0.9), sync_every=2) as running:
            for batch in batches(place.rank, steps=4):
                optimizer.zero_grad()
                model(**batch)["loss"].backward()
                optimizer.step()
            last = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
        same = torch.equal(last, torch.nn.utils.parameters_to_vector(model.parameters()))
        optimizer.step()
        return same, running.averaging.total_steps, running.averaging.engine.periods.rounds

    assert in_ranks(work, processes=RANKS) == [(True, 4, 2)] * RANKS


@pytest.mark.parametrize("sync_every", ["auto", 2.5, None])
def test_what_is_no_number_of_steps_is_refused_with_the_way_out(sync_every):
    model = Network()
    with pytest.raises(ValueError, match=r"neither losses nor a closure.*call PeriodicAveraging\.step"):
        DiLoCo(model, torch.optim.SGD(model.parameters(), lr=LR), sync_every=sync_every)
