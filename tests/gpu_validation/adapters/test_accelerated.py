"""accelerate: the same bits as a plain loop, inside the wrapper that averages gradients."""

import pytest
import torch
from accelerate import Accelerator

from gpu_validation.adapters import accelerated
from gpu_validation.adapters.accelerated import LocalSGD
from gpu_validation.adapters.keywords import local_gradients
from tests.gpu_validation.adapters.runs import (
    LR,
    RANKS,
    SETTINGS,
    STEPS,
    TAU,
    Late,
    Network,
    Never,
    as_torchrun,
    auto,
    batches,
    different,
    outcome,
    plain,
)
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)


def prepared():
    accelerator = Accelerator(cpu=True)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
    return accelerator, *accelerator.prepare(model, optimizer)


def adapted(place, settings, schedule=TAU):
    accelerator, model, optimizer = prepared()
    assert type(model).__name__ == "DistributedDataParallel", "the trap is there"
    with LocalSGD(
        accelerator=accelerator, model=model, local_sgd_steps=schedule, optimizer=optimizer, **settings
    ) as local_sgd:
        for batch in batches(place.rank):

            def closure(batch=batch):
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                return loss

            loss = closure()
            optimizer.step()
            local_sgd.step(loss, closure)
            optimizer.zero_grad()
    return outcome(local_sgd.averaging)


@pytest.fixture(scope="module")
def reports():
    """Of every rank: all runs, by hand and adapted, and two of wrong adapters."""

    def work(place):
        as_torchrun(place)
        runs = {name: (plain(place, s), adapted(place, s)) for name, s in SETTINGS.items()}
        runs["auto"] = plain(place, {}, auto()), adapted(place, {}, auto())
        for wrong in (Late, Never):
            accelerated.PeriodicAveraging = wrong
            runs[wrong.__name__] = runs["compressed"][0], adapted(place, SETTINGS["compressed"])
        return runs

    return in_ranks(work, processes=RANKS)


@pytest.mark.parametrize("name", [*SETTINGS, "auto"])
def test_the_adapter_gives_the_bits_and_bytes_of_a_plain_loop(name, reports):
    for runs in reports:
        assert not different(*runs[name])
        assert runs[name][1][1] > 0
        assert runs[name][1][2] == STEPS


def test_ranks_end_with_the_same_model(reports):
    for name in SETTINGS:
        assert reports[0][name][1][0].tobytes() == reports[1][name][1][0].tobytes()


@pytest.mark.parametrize("name", ["Late", "Never"])
def test_an_adapter_that_averages_late_or_never_would_be_seen(name, reports):
    assert all(different(*runs[name]) for runs in reports)


def test_accumulated_batches_are_no_local_steps_and_errors_do_not_wait_for_others():
    def work(place):
        as_torchrun(place)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = Network()
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=LR))
        with LocalSGD(accelerator, model, 2) as local_sgd:
            rounds = []
            for batch in batches(place.rank):
                with accelerator.accumulate(model):
                    accelerator.backward(model(**batch)["loss"])
                    optimizer.step()
                    optimizer.zero_grad()
                    rounds.append(local_sgd.step() is not None)
        steps = local_sgd.averaging.total_steps
        with pytest.raises(KeyError), LocalSGD(accelerator, model, 2):
            raise KeyError("on one rank only" if place.rank else "on the other")
        disabled = LocalSGD(accelerator, model, 2, enabled=False)
        with disabled:
            disabled.step()
        return steps, rounds, disabled.averaging is None

    for steps, rounds, nothing in in_ranks(work, processes=RANKS):
        assert steps == 5
        assert rounds == [False, False, False, True] * 2 + [False] * 2
        assert nothing


def test_another_wrapper_is_refused_with_a_remedy():
    model = Network()
    with pytest.raises(ValueError, match=r"wrapped in DataParallel, and .* on every rank, .*: leave FSDP out$"):
        local_gradients(torch.nn.DataParallel(model), model, "leave FSDP out")
