"""Averages that are wrong on real ranks are rows of the report; every honest mode has no such row."""

import json

import numpy as np
import pytest
import torch

from gpu_validation.cli import main
from gpu_validation.local_sgd.delta_codec import Receiver
from gpu_validation.local_sgd.mixing import Sampled
from gpu_validation.local_sgd.periodic_averaging import PeriodicAveraging
from gpu_validation.local_sgd.worker import Worker
from operators import ErrorFeedback, Key, RandomK, ScaledSign, TopK

from ..ranks import in_ranks

pytestmark = pytest.mark.timeout(240)
D = 60


def scaled(factor):
    """Return a mutation by which every mean of messages has this factor."""

    def mutate(patch, averaging, place):
        honest = Receiver.mean

        def mean(self, *args, **settings):
            movement, decoded = honest(self, *args, **settings)
            return movement * factor, decoded

        patch.setattr(Receiver, "mean", mean)

    return mutate


def dropped(patch, averaging, place):
    honest = Receiver.mean

    def mean(self, messages, members, keys, keep):
        movement, decoded = honest(self, messages, members, keys, keep=(*range(len(keys)),))
        return movement - decoded[1] / len(members), {r: v for r, v in decoded.items() if r in keep}

    patch.setattr(Receiver, "mean", mean)


def one_key(of_ranks):
    def mutate(patch, averaging, place):
        honest = Key.of_ranks

        def keys(self, ranks, *, step=0, **settings):
            if of_ranks:
                return [honest(self, [0], step=step, **settings)[0] for _ in ranks]
            return honest(self, ranks, step=0, **settings)

        patch.setattr(Key, "of_ranks", keys)

    return mutate


def undone(patch, averaging, place):
    honest = averaging.step

    def step(loss=None, closure=None):
        before = [p.detach().clone() for p in averaging._worker.parameters]
        done = honest(loss, closure)
        if done is not None and place.rank == 1:
            for p, old in zip(averaging._worker.parameters, before, strict=True):
                p.data.copy_(old)
        return done

    patch.setattr(averaging, "step", step)


def idle(patch, averaging, place):
    if place.rank == 1:
        optimizer = averaging._worker.optimizer
        patch.setattr(optimizer, "step", lambda closure=None: None)


def hurried(patch, averaging, place):
    if place.rank == 1:
        for group in averaging._worker.optimizer.param_groups:
            group["lr"] *= 3


def ignored(patch, averaging, place):
    """Scale what is written to the parameters, behind every mean."""
    honest = Worker.begin
    patch.setattr(Worker, "begin", lambda self, anchor: honest(self, anchor * 1.5))


MEANS, KEYS = "averagings that are not the mean of the messages", "keys of messages, used twice"
WRONG = {
    "mean x .5": (scaled(0.5), MEANS),
    "mean x 1.5": (scaled(1.5), MEANS),
    "a message dropped": (dropped, MEANS),
    "parameters x 1.5": (ignored, MEANS),
    "one key for all ranks": (one_key(True), KEYS),
    "one key for all steps": (one_key(False), KEYS),
    "an averaging undone": (undone, "first steps away from the averaged model"),
    "idle steps": (idle, "optimizer steps, rounds that differ"),
    "three times the rate": (hurried, "learning rates, rounds that differ"),
}


def trained(place, folder, mutate=None, number=16, lr=0.02, decay=None, **settings):
    patch = pytest.MonkeyPatch()
    model = torch.nn.Linear(D, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    averaging = PeriodicAveraging(model, optimizer, key=Key(1), telemetry=folder, **settings)
    if mutate is not None:
        mutate(patch, averaging, place)
    draw = torch.Generator().manual_seed(place.rank)
    try:
        for k in range(number):
            if decay is not None:
                optimizer.param_groups[0]["lr"] = lr * decay**k
            optimizer.zero_grad()
            noise = torch.randn(model.weight.shape, generator=draw)
            loss = (0.5 * model.weight**2 + 0.1 * noise * model.weight).sum()
            loss.backward()
            optimizer.step()
            averaging.step(loss.detach())
    finally:
        patch.undo()
    averaging.report()


def attached(folder, capsys):
    assert main(["attach", str(folder), "--once", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)["comparisons"]
    return {row["quantity"]: row["verdict"] for row in found}


@pytest.mark.thorough
def test_attach_notices_each_wrong_average_on_real_ranks(tmp_path, capsys):
    RandomK(fraction=0.5)(np.linspace(-1, 1, D, dtype=np.float32), key=Key(0))

    def work(place):
        for name, (mutate, _) in WRONG.items():
            trained(place, tmp_path / name, mutate, schedule=2, operator=RandomK(fraction=0.5))

    in_ranks(work, processes=2)

    for name, (_, quantity) in WRONG.items():
        assert attached(tmp_path / name, capsys).get(quantity) == "VIOLATED", name


HONEST = {
    "operator": {"schedule": 2, "operator": RandomK(fraction=0.5)},
    "whole": {"schedule": 2},
    "two shots": {"schedule": 2, "operator": ScaledSign(), "exchange": "two_shot"},
    "outer": {"schedule": 2, "operator": ScaledSign(), "block_momentum": 0.5},
    "outer of whole models": {"schedule": 2, "block_momentum": 0.5},
    "feedback": {"schedule": 2, "operator": ErrorFeedback(TopK(fraction=0.2))},
    "uneven": {"schedule": 2, "uneven": True},
    "decaying rate": {"schedule": 2, "operator": RandomK(fraction=0.5), "decay": 0.9},
    "sampled": {"schedule": 2, "mixing": Sampled(clients=1, key=Key(3)), "operator": ScaledSign()},
}


@pytest.mark.thorough
def test_no_honest_mode_has_a_false_row(tmp_path, capsys):
    def work(place):
        for name, settings in HONEST.items():
            trained(place, tmp_path / name, **settings)

    in_ranks(work, processes=2)

    for name in HONEST:
        rows = attached(tmp_path / name, capsys)
        assert "VIOLATED" not in rows.values(), (name, rows)
        if name not in ("two shots",):
            assert rows[MEANS] == "HOLDS", (name, rows)


def test_whole_models_that_are_not_the_mean_are_noticed(tmp_path, capsys):
    def work(place):
        trained(place, tmp_path, ignored, schedule=2)

    in_ranks(work, processes=2)
    assert attached(tmp_path, capsys)[MEANS] == "VIOLATED"
