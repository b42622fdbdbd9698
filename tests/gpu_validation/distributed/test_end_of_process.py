"""When a process ends, no thread of a back end is left that could abort it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
import atexit, os

def say():  # runs last, while the interpreter is still whole
    names = [open(f"/proc/self/task/{thread}/comm").read().strip() for thread in os.listdir("/proc/self/task")]
    print("threads:", *(name for name in names if "gloo" in name))

atexit.register(say)
import torch
import torch.distributed as dist
from gpu_validation import PeriodicAveraging

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(2, 1)
averaging = PeriodicAveraging(model, torch.optim.SGD(model.parameters(), lr=0.1), **{settings})
averaging.transport.waiting_room(5)
for _ in range(4):
    model(torch.ones(1, 2)).sum().backward()
    averaging.step()
averaging.average()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "settings", [{}, {"overlap": "corrected", "delay": 1, "schedule": 2}], ids=["blocking", "overlap"]
)
def test_no_thread_of_gloo_is_left_when_the_interpreter_ends(settings):
    script = SCRIPT.replace("{settings}", repr(settings))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["threads:"]
