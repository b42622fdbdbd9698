"""A rank is killed with a message in flight: the others end by themselves, within the time-out, and resume exactly."""

import importlib
import os
import signal
import sys
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from gpu_validation import Nesterov
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.averaging.membership.parts import Nodes
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.checkpoint import Checkpoint
from gpu_validation.processes.linux import end_with_parent
from operators import ErrorFeedback, ScaledSign
from tests.gpu_validation.test_killed_ranks import FORK, MOMENTS, SENTENCE, equal, network

pytestmark = pytest.mark.timeout(300)
VICTIM, STEPS, TAU, DELAY = 1, 12, 4, 3
SAVED = 6  # local steps; a message is then between its send and its merge, and another one leaves later
TIMEOUT_S = 30.0
SIGNS = ErrorFeedback(ScaledSign())
# by name: ranks, and how they average
KINDS = {
    "whole models": (3, {}),
    "fragments": (3, {"merge": Corrected(DELAY, fragments=2)}),
    "compressed fragments": (3, {"merge": Corrected(DELAY, fragments=2), "exchange": TwoShot(SIGNS)}),
    "nodes": (4, {"membership": Nodes(2), "operator": SIGNS}),
}


class Killer:
    """Ends its process by SIGKILL at a fraction of the calls that Python makes while a message is under way."""

    def __init__(self, moment):
        self.moment, self.calls, self.fatal_call, self.armed = moment, 0, None, False

    def watch(self, transport):
        """Count the calls of every flight; once armed, end in the course of the next one."""
        start = transport.start
        transport.start = lambda work: start(lambda: self._followed(work))

    def _followed(self, work):
        if self.armed:
            self.fatal_call = int(self.moment * self.calls)
        self.calls = 0
        sys.setprofile(self._count)  # of this thread
        try:
            return work()
        finally:
            sys.setprofile(None)

    def _count(self, *_):
        if self.calls == self.fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls += 1


def rank_main(kind, rank, folder, run, killer):
    end_with_parent(os.getppid())
    torch.set_num_threads(1)
    ranks, settings = KINDS[kind]
    store = dist.FileStore(str(folder / run), ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=TIMEOUT_S))
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    settings = {"schedule": TAU, "merge": Corrected(DELAY), "outer": Nesterov(0.7, 0.5)} | settings
    averaging = PeriodicAveraging(model, optimizer, **settings)
    if killer and rank == VICTIM:
        killer.watch(averaging.transport)
    checkpoint = Checkpoint(folder, model=model, optimizer=optimizer, averaging=averaging)
    words, noticed_s, began = "", 0.0, time.monotonic()
    try:
        for step in range(checkpoint.load(), STEPS):
            x = torch.randn(8, 7, generator=torch.Generator().manual_seed(10 * step + rank))
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            began = time.monotonic()
            averaging.step()
            if step + 1 == SAVED:
                assert averaging.engine.overlapped.parts[-1].flight is not None
                checkpoint.save(SAVED)
                if killer:
                    killer.armed = True
        averaging.average()
    except Exception as error:
        words, noticed_s = f"{type(error).__name__}: {error}", time.monotonic() - began
    memory = {name: part for name, part in averaging.state_dict().items() if name != "clock"} if not words else {}
    state = [p.detach() for p in model.parameters()], memory
    torch.save({"words": words, "noticed_s": noticed_s, "state": state}, folder / f"{run}-{rank}")
    os._exit(0)  # a group that has lost a rank cannot be left together


def run_of(kind, folder, run, killer=None):
    """What every rank has come to, None for one that has left nothing; all have ended by themselves."""
    importlib.import_module("torch._dynamo")  # any optimizer does: here once, and not in every rank
    folder.mkdir(exist_ok=True)
    ranks = [
        FORK.Process(target=rank_main, args=(kind, r, folder, run, killer), daemon=True) for r in range(KINDS[kind][0])
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    return [
        torch.load(folder / f"{run}-{rank}", weights_only=True) if process.exitcode == 0 else None
        for rank, process in enumerate(ranks)
    ]


def check_deaths(kind, moments, folder):
    straight = run_of(kind, folder / "straight", "run")
    assert [result["words"] for result in straight] == [""] * len(straight)
    for moment in moments:
        place = folder / str(moment)
        broken = run_of(kind, place, "broken", Killer(moment))
        assert broken[VICTIM] is None, "the rank was not killed"
        for rank in {*range(len(straight))} - {VICTIM}:
            assert SENTENCE in broken[rank]["words"], broken[rank]["words"]
            assert broken[rank]["noticed_s"] < TIMEOUT_S
        for result, expected in zip(run_of(kind, place, "resumed"), straight, strict=True):
            assert result["words"] == ""
            assert equal(result["state"], expected["state"])


def test_the_others_end_with_a_sentence_and_resume_exactly(tmp_path):
    check_deaths("compressed fragments", MOMENTS[:1], tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_at_ten_moments(kind, tmp_path):
    check_deaths(kind, MOMENTS, tmp_path)
