"""A rank is killed at random moments of an exchange in two steps: the others end by themselves, and resume exactly."""

import importlib
import multiprocessing
import os
import random
import signal
import sys
from datetime import timedelta
from functools import partial
from types import MappingProxyType

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.checkpoint import Checkpoint
from gpu_validation.processes.linux import end_with_parent
from operators import ErrorFeedback, ScaledSign
from operators.ddp import register
from operators.summed import SharedScale

pytestmark = pytest.mark.timeout(300)
FORK = multiprocessing.get_context("fork")
RANKS, VICTIM, STEPS = 3, 1, 6
SAVED, REHEARSED, FATAL = 2, 3, 4  # steps: done when the state is saved, in which events are counted, in which it ends
METHOD = ErrorFeedback(ScaledSign())
MOMENTS = [random.Random(seed).random() for seed in range(10)]
SENTENCE = "failed, because another rank has ended, died or stopped"


class Killer:
    """Ends its process by SIGKILL at a fraction of the calls that Python makes in one shot of an exchange."""

    def __init__(self, shot, moment):
        self.shot, self.moment, self.calls, self.fatal_call = shot, moment, 0, None

    def follow(self, step):
        """Count the calls of one step, and end in the course of another."""
        if step == FATAL:
            self.fatal_call, self.calls = int(self.moment * self.calls), 0
        self.following = step in (REHEARSED, FATAL)

    def enter(self, shot, act, *arguments):
        """A shot begins with this act; the first ends where the second begins, and that with the step."""
        sys.setprofile(self._count if self.following and shot == self.shot else None)
        return act(*arguments)

    def _count(self, *_):
        if self.calls == self.fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls += 1


class Mean:
    """Local steps and compressed averagings."""

    settings = MappingProxyType({"exchange": TwoShot(METHOD)})

    def __init__(self):
        self.model = network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.5)
        self.exchange = PeriodicAveraging(self.model, self.optimizer, **self.settings)
        self.first, self.second = self.shots()

    def shots(self):
        sender = self.exchange._worker.sender
        return (sender, "encode"), (sender, "merge")

    def step(self, x):
        self.optimizer.zero_grad()
        self.model(x).square().mean().backward()
        self.optimizer.step()
        self.exchange.step()


class Hook:
    """Compressed gradients."""

    settings = MappingProxyType({"operator": METHOD, "exchange": "two_shot"})

    def __init__(self):
        self.model = DistributedDataParallel(network())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.5)
        self.exchange = register(self.model, **self.settings)
        self.first, self.second = self.shots()

    def shots(self):
        return (self.exchange._ends, "encode"), (self.exchange._ends, "merge")

    def step(self, x):
        self.optimizer.zero_grad()
        self.model(x).square().mean().backward()
        self.optimizer.step()


class MeanOfSums(Mean):
    """Averagings of terms that are summed on the way."""

    settings = MappingProxyType({"operator": SharedScale()})

    def shots(self):
        return (self.exchange._worker.sender, "encode"), (self.exchange.engine.movements, "_summed")


class HookOfSums(Hook):
    """Gradients that are summed on the way."""

    settings = MappingProxyType({"operator": SharedScale()})

    def shots(self):
        return (self.exchange._ends, "begin"), (self.exchange._ends, "merge")


def network():
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(7, 30), torch.nn.Tanh(), torch.nn.Linear(30, 3))


def rank_main(kind, rank, folder, run, killer):
    end_with_parent(os.getppid())
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / run), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=30))
    training = kind()
    checkpoint = Checkpoint(folder, model=training.model, optimizer=training.optimizer, exchange=training.exchange)
    if killer and rank == VICTIM:
        for shot, (owner, name) in enumerate((training.first, training.second)):
            setattr(owner, name, partial(killer.enter, shot, getattr(owner, name)))
    words = ""
    try:
        for step in range(checkpoint.load(), STEPS):
            if killer:
                killer.follow(step)
            training.step(torch.randn(8, 7, generator=torch.Generator().manual_seed(10 * step + rank)))
            sys.setprofile(None)
            if step + 1 == SAVED:
                checkpoint.save(SAVED)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
    memory = {name: part for name, part in training.exchange.state_dict().items() if name != "clock"}  # real seconds
    state = [p.detach() for p in training.model.parameters()], memory
    torch.save({"words": words, "state": state}, folder / f"{run}-{rank}")
    os._exit(0)  # a group that has lost a rank cannot be left together


def run_of(kind, folder, run, killer=None):
    """What every rank has come to, None for one that has left nothing; all have ended by themselves."""
    importlib.import_module("torch._dynamo")  # any optimizer does: here once, and not in every rank
    folder.mkdir(exist_ok=True)
    ranks = [FORK.Process(target=rank_main, args=(kind, r, folder, run, killer), daemon=True) for r in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    found = []
    for rank, process in enumerate(ranks):
        path = folder / f"{run}-{rank}"
        found.append(torch.load(path, weights_only=True) if process.exitcode == 0 else None)
    return found


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def check_deaths(kind, shot, moments, folder):
    straight = run_of(kind, folder / "straight", "run")
    assert [result["words"] for result in straight] == [""] * RANKS
    for moment in moments:
        place = folder / str(moment)
        broken = run_of(kind, place, "broken", Killer(shot, moment))
        assert broken[VICTIM] is None, "the rank was not killed"
        for rank in {*range(RANKS)} - {VICTIM}:
            words = broken[rank]["words"]
            assert SENTENCE in words, words
            assert "\n" not in words
        for result, expected in zip(run_of(kind, place, "resumed"), straight, strict=True):
            assert result["words"] == ""
            assert equal(result["state"], expected["state"])


def test_the_others_end_with_a_sentence_and_resume_exactly(tmp_path):
    check_deaths(Hook, 1, MOMENTS[:1], tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("shot", [0, 1])
@pytest.mark.parametrize("kind", [Mean, Hook, MeanOfSums, HookOfSums])
def test_at_ten_moments_of_either_shot(kind, shot, tmp_path):
    check_deaths(kind, shot, MOMENTS, tmp_path)
