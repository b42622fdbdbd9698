"""Averages that are wrong on real ranks are rows of the report; every honest mode has no such row."""

import itertools
import json

import numpy as np
import pytest
import torch

from gpu_validation.averaging.exchange.movements import Receiver
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Uneven
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.worker import Worker
from gpu_validation.cli import main
from operators import ErrorFeedback, Key, RandomK, ScaledSign, TopK
from tests.gpu_validation.ranks import in_ranks

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


def by_round(change):
    """Return a mutation of what every mean of messages gives: a function of round, movement, decoded and count."""

    def mutate(patch, averaging, place):
        honest, rounds = Receiver.mean, itertools.count()

        def mean(self, messages, members, keys, keep):
            movement, decoded = honest(self, messages, members, keys, keep=(*range(len(keys)),))
            changed = change(next(rounds), movement, decoded, len(members), place.rank)
            return changed, {r: v for r, v in decoded.items() if r in keep}

        patch.setattr(Receiver, "mean", mean)

    return mutate


def stale():
    """Return the mean of the round before."""
    last = {}

    def change(_, movement, decoded, count, rank):
        before = last.get(rank, torch.zeros_like(movement))
        last[rank] = movement.clone()
        return before

    return by_round(change)


def one_key_every_second_step(patch, averaging, place):
    honest = Key.of_ranks

    def keys(self, ranks, *, step=0, **settings):
        return honest(self, ranks, step=step - step % 2, **settings)

    patch.setattr(Key, "of_ranks", keys)


def layer_left_out(patch, averaging, place):
    """Keep the last tenth of the parameters of every rank's own model."""
    honest, worker = Worker.begin, averaging._worker

    def begin(self, anchor):
        own = [p.detach().clone() for p in worker.parameters]
        honest(self, anchor)
        for p, kept in zip(worker.parameters, own, strict=True):
            p.data.view(-1)[-D // 10 :] = kept.view(-1)[-D // 10 :]

    patch.setattr(Worker, "begin", begin)


def one_more_step(patch, averaging, place):
    """Step twice on rank 1 before every second averaging step."""
    if place.rank == 1:
        optimizer = averaging._worker.optimizer
        honest, calls = optimizer.step, itertools.count()

        def step(closure=None):
            if next(calls) % 4 == 0:
                honest()
            return honest()

        patch.setattr(optimizer, "step", step)


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

SELDOM = 80  # steps in which a fault of every fifth averaging must be seen
WRONG_TOO = {
    "mean x 1.001": (scaled(1.001), MEANS),
    "every fifth averaging skipped": (by_round(lambda k, x, *_: x * (k % 5 != 4)), MEANS),
    "one message twice, another never": (by_round(lambda k, x, own, n, r: x + (own[0] - own[1]) / n), MEANS),
    "a rank that trusts itself alone": (by_round(lambda k, x, own, n, r: own[1] if r == 1 else x), MEANS),
    "the mean of the round before": (stale(), MEANS),
    "added twice": (by_round(lambda k, x, *_: 2 * x), MEANS),
    "rounded to bfloat16": (by_round(lambda k, x, *_: x.bfloat16().float()), MEANS),
    "a tenth of the parameters left out": (layer_left_out, MEANS),
    "keys of every second step": (one_key_every_second_step, KEYS),
    "one step more on one rank": (one_more_step, "optimizer steps, rounds that differ"),
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


@pytest.mark.thorough
def test_attach_notices_averages_that_are_wrong_a_little_or_seldom(tmp_path, capsys):
    def work(place):
        for name, (mutate, _) in WRONG_TOO.items():
            trained(place, tmp_path / name, mutate, number=SELDOM, schedule=2, operator=RandomK(fraction=0.5))

    in_ranks(work, processes=2)

    found = {name: attached(tmp_path / name, capsys).get(quantity) for name, (_, quantity) in WRONG_TOO.items()}
    assert found == dict.fromkeys(WRONG_TOO, "VIOLATED")


HONEST = {
    "operator": {"schedule": 2, "operator": RandomK(fraction=0.5)},
    "whole": {"schedule": 2},
    "two shots": {"schedule": 2, "exchange": TwoShot(ScaledSign())},
    "outer": {"schedule": 2, "operator": ScaledSign(), "outer": BlockMomentum(0.5)},
    "outer of whole models": {"schedule": 2, "outer": BlockMomentum(0.5)},
    "feedback": {"schedule": 2, "operator": ErrorFeedback(TopK(fraction=0.2))},
    "uneven": {"schedule": 2, "membership": Uneven()},
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
