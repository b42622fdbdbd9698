"""A rank is killed with a message in flight: the others end by themselves, within the time-out, and resume exactly."""

import os
import random
import signal
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from gpu_validation import Nesterov
from gpu_validation.distributed.checkpoint import Checkpoint
from gpu_validation.distributed.orphans import die_with
from gpu_validation.local_sgd.periodic_averaging import PeriodicAveraging

from .test_killed_ranks import FORK, SENTENCE, equal, network

pytestmark = pytest.mark.timeout(300)
RANKS, VICTIM, STEPS, TAU, DELAY = 3, 1, 12, 4, 3
SAVED, FATAL = 6, 10  # local steps; both are between a send and its merge
TIMEOUT_S = 30.0


class Killer:
    """Ends its process by SIGKILL while its message is under way: before a random one of its exchanges."""

    def __init__(self, moment):
        self.moment = moment

    def lie_in_wait(self, transport):
        swaps = transport._swap

        def swap(*arguments):
            time.sleep(self.moment * 0.02)  # the training thread goes on, the others wait for this rank
            os.kill(os.getpid(), signal.SIGKILL)
            swaps(*arguments)

        transport._swap = swap


def rank_main(rank, folder, run, killer):
    die_with(os.getppid())
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / run), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=TIMEOUT_S))
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    averaging = PeriodicAveraging(
        model, optimizer, schedule=TAU, overlap="corrected", delay=DELAY, outer=Nesterov(0.7, 0.5)
    )
    checkpoint = Checkpoint(folder, model=model, optimizer=optimizer, averaging=averaging)
    words, noticed_s, began = "", 0.0, time.monotonic()
    try:
        for step in range(checkpoint.load(), STEPS):
            if killer and rank == VICTIM and step + 1 == TAU * 2 + TAU - DELAY:  # the step after which a message leaves
                killer.lie_in_wait(averaging.transport)
            x = torch.randn(8, 7, generator=torch.Generator().manual_seed(10 * step + rank))
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            began = time.monotonic()
            averaging.step()
            if step + 1 == SAVED:
                assert averaging.overlapped.parts[0].flight is not None
                checkpoint.save(SAVED)
        averaging.average()
    except Exception as error:
        words, noticed_s = f"{type(error).__name__}: {error}", time.monotonic() - began
    memory = {name: part for name, part in averaging.state_dict().items() if name != "clock"} if not words else {}
    state = [p.detach() for p in model.parameters()], memory
    torch.save({"words": words, "noticed_s": noticed_s, "state": state}, folder / f"{run}-{rank}")
    os._exit(0)  # a group that has lost a rank cannot be left together


def run_of(folder, run, killer=None):
    """What every rank has come to, None for one that has left nothing; all have ended by themselves."""
    folder.mkdir(exist_ok=True)
    ranks = [FORK.Process(target=rank_main, args=(r, folder, run, killer), daemon=True) for r in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    return [
        torch.load(folder / f"{run}-{rank}", weights_only=True) if process.exitcode == 0 else None
        for rank, process in enumerate(ranks)
    ]


def check_deaths(moments, folder):
    straight = run_of(folder / "straight", "run")
    assert [result["words"] for result in straight] == [""] * RANKS
    for moment in moments:
        place = folder / str(moment)
        broken = run_of(place, "broken", Killer(moment))
        assert broken[VICTIM] is None, "the rank was not killed"
        for rank in {*range(RANKS)} - {VICTIM}:
            assert SENTENCE in broken[rank]["words"], broken[rank]["words"]
            assert broken[rank]["noticed_s"] < TIMEOUT_S
        for result, expected in zip(run_of(place, "resumed"), straight, strict=True):
            assert result["words"] == ""
            assert equal(result["state"], expected["state"])


def test_the_others_end_with_a_sentence_and_resume_exactly(tmp_path):
    check_deaths([0.5], tmp_path)


@pytest.mark.thorough
def test_at_ten_moments(tmp_path):
    check_deaths([random.Random(seed).random() for seed in range(10)], tmp_path)
