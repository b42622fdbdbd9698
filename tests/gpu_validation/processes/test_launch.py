import os
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

from gpu_validation.processes import launch
from gpu_validation.processes.launch import RunFailed, backend_for, run_ranks
from gpu_validation.processes.position import at

pytestmark = pytest.mark.timeout(90)


def children():
    """Process ids of this process's living children."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.append(int(entry))
    return found


@pytest.fixture(autouse=True)
def _leaves_no_process_behind():
    before = set(children())
    yield
    assert set(children()) <= before


def test_every_rank_takes_part_and_is_heard():
    def work(place, emit):
        total = torch.tensor([place.rank + 1])
        dist.all_reduce(total)
        emit((place.rank, place.size, int(total)))

    assert sorted(run_ranks(work, processes=3, hang_timeout_s=30)) == [(0, 3, 6), (1, 3, 6), (2, 3, 6)]


def test_an_error_in_a_rank_is_reported_with_its_words():
    def work(place, emit):
        if place.rank == 1:
            raise ValueError("the tensor is mauve")
        dist.barrier()

    with pytest.raises(RunFailed, match="rank 1 failed: ValueError: the tensor is mauve"):
        list(run_ranks(work, processes=2, hang_timeout_s=30))


def test_a_killed_rank_ends_the_run_and_keeps_what_was_said():
    def work(place, emit):
        if place.rank == 0:
            emit("before")
        dist.barrier()
        if place.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    round_losses = []
    with pytest.raises(RunFailed, match="rank 1 was killed by SIGKILL"):
        round_losses.extend(run_ranks(work, processes=2, hang_timeout_s=30))
    runner = run_ranks(work, processes=2, hang_timeout_s=30)
    assert next(runner) == "before"
    runner.close()


def test_a_silent_run_is_taken_for_hung():
    def work(place, emit):
        if place.rank == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(60)

    began = time.monotonic()
    with pytest.raises(RunFailed, match="no rank has reported for 2 s"):
        list(run_ranks(work, processes=2, hang_timeout_s=2))
    assert time.monotonic() - began < 30


def test_a_rank_that_computes_slowly_is_not_hung():
    def work(place, emit):
        for _ in range(40):  # a tenth of a core for twice the patience
            end = time.process_time() + 0.01
            while time.process_time() < end:
                pass
            time.sleep(0.09)
        emit(place.rank)

    assert sorted(run_ranks(work, processes=2, hang_timeout_s=2)) == [0, 1]


def test_a_rank_that_computes_without_end_is_hung_and_its_position_is_named():
    def work(place, emit):
        at(unit="unit 7", step="step 3", tensor="weight")
        at(exchange="all-gather")
        if place.rank:
            at(step="step 4")
            while True:
                pass
        time.sleep(60)

    with pytest.raises(RunFailed, match="no rank has reported in 1 s of processor time") as failure:
        list(run_ranks(work, processes=2, hang_timeout_s=1))
    assert "rank 0: unit 7, step 3, weight, all-gather; rank 1: unit 7, step 4" in str(failure.value)


def test_patience_replaces_the_limit_of_a_study(monkeypatch):
    monkeypatch.setattr(launch, "patience_s", 1.0)
    with pytest.raises(RunFailed, match="no rank has reported for 1 s or used the processor"):
        list(run_ranks(lambda place, emit: time.sleep(60), processes=2, hang_timeout_s=1000))


def test_the_position_of_a_killed_and_of_a_failed_rank_is_named():
    def die(place, emit):
        at(unit="u", step=f"step {place.rank}")
        if place.rank:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    def fail(place, emit):
        at(unit="u", step=f"step {place.rank}")
        if place.rank:
            raise KeyError("mauve")
        time.sleep(60)

    for work, words in ((die, "killed by SIGKILL at u, step 1;"), (fail, "KeyError: 'mauve'; it was at u, step 1")):
        with pytest.raises(RunFailed, match=words):
            list(run_ranks(work, processes=2, hang_timeout_s=30))


def test_an_abandoned_run_ends_its_processes():
    def work(place, emit):
        emit(place.rank)
        time.sleep(60)

    runner = run_ranks(work, processes=2, hang_timeout_s=30)
    next(runner)
    runner.close()  # the fixture sees that nobody is left


def test_there_must_be_a_process():
    with pytest.raises(ValueError, match="processes must be >= 1; got 0"):
        next(run_ranks(lambda place, emit: None, processes=0, hang_timeout_s=1))


@pytest.mark.parametrize(("gpus", "backend"), [(0, "gloo"), (1, "gloo"), (4, "cpu:gloo,cuda:nccl")])
def test_nccl_joins_ranks_only_if_each_has_a_gpu(monkeypatch, gpus, backend):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)

    assert backend_for(4) == backend


GARBAGE = """
import gc
import torch.distributed as dist
from gpu_validation import run_ranks

gc.disable()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
cycle = [dist.distributed_c10d._get_default_group()]
cycle.append(cycle)
del cycle
dist.destroy_process_group()

def work(place, emit):
    gc.collect()
    emit(place.rank)

print(sorted(run_ranks(work, processes=2, hang_timeout_s=10)), gc.get_freeze_count())
"""


def test_ranks_do_not_wait_for_threads_of_a_group_that_is_garbage_of_their_parent():
    run = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True, timeout=90, check=False)
    assert run.stdout == "[0, 1] 0\n", run.stderr
