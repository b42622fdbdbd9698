"""A process ends: no thread of a back end is left that could abort it, and none that it waits for waits for it."""

import multiprocessing
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_validation import PeriodicAveraging
from gpu_validation.averaging.merge.rules import Corrected
from operators import QSGD, Message
from operators.ddp.collectives import Gather, Scatter

pytestmark = pytest.mark.timeout(120)

MESSAGE = Message(torch.ones(2, dtype=torch.uint8), 16)

SCRIPT = """
import atexit, os

def say():  # runs last, while the interpreter is still whole
    names = [open(f"/proc/self/task/{thread}/comm").read().strip() for thread in os.listdir("/proc/self/task")]
    print("threads:", *(name for name in names if "gloo" in name))

atexit.register(say)
import torch
import torch.distributed as dist
from gpu_validation import Corrected, PeriodicAveraging

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(2, 1)
averaging = PeriodicAveraging(model, torch.optim.SGD(model.parameters(), lr=0.1), **{settings})
averaging.transport.group_with_timeout(5)
for _ in range(4):
    model(torch.ones(1, 2)).sum().backward()
    averaging.step()
averaging.average()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("settings", [{}, {"merge": Corrected(delay=1), "schedule": 2}], ids=["blocking", "overlap"])
def test_no_thread_of_gloo_is_left_when_the_interpreter_ends(settings):
    script = SCRIPT.replace("{settings}", repr(settings))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["threads:"]


def averages():
    model = torch.nn.Linear(64, 64)
    averaging = PeriodicAveraging(model, torch.optim.SGD(model.parameters(), lr=0.1), operator=QSGD(levels=4))
    model(torch.ones(1, 64)).sum().backward()
    averaging.step()


def gathers():
    gather = Gather(MESSAGE)
    gather.send()
    gather.wait()


def scatters():
    scatter = Scatter([MESSAGE, MESSAGE])
    scatter.send()
    scatter.wait()


def exchanges():
    """Exchange a tensor that a thread of gloo is often the last to hold."""
    dist.all_to_all_single(torch.empty(2), torch.ones(2))


def train(rank, folder, uses):
    """Leave a model as the last to hold its group, right after collectives, again and again."""
    sys.setswitchinterval(100)  # a thread that waits for the interpreter gets it only when it is let go
    for again in range(8):
        dist.init_process_group("gloo", init_method=f"file://{folder}/{again}", rank=rank, world_size=2)
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        uses()
        for _ in range(20):
            exchanges()
        dist.destroy_process_group()
        del model


def ends(folder, uses):
    """Whether both ranks end."""
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=train, args=(rank, folder, uses)) for rank in (0, 1)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(20)
    ended = [process.exitcode for process in ranks]
    for process in ranks:
        process.kill()
    return ended == [0, 0]


@pytest.mark.parametrize("uses", [averages, gathers, scatters])
def test_a_model_that_is_the_last_to_hold_its_group_is_freed(tmp_path, uses):
    assert ends(tmp_path, uses)
