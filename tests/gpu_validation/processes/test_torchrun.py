"""Under torchrun: a killed or hung rank is noticed, all ranks start anew, and the result is the uninterrupted one."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gpu_validation.processes.launch import join_torchrun, run_ranks

TIMEOUT_S = 4
SCRIPT = """
import os, signal, sys, time
import torch
import torch.distributed as dist
from gpu_validation import Checkpoint, PeriodicAveraging
from gpu_validation.processes.tensors import flat
from operators import ErrorFeedback, Key, QSGD

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # a line in one write: two ranks share the pipe

def train(folder, accident=None):
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Dropout(0.5), torch.nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    averaging = PeriodicAveraging(model, optimizer, schedule=3, operator=ErrorFeedback(QSGD(levels=4)), key=Key(1))
    checkpoint = Checkpoint(folder, model=model, optimizer=optimizer, averaging=averaging, rng=torch.default_generator)
    start = checkpoint.load()
    for step in range(start, 20):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
        if accident is not None and rank == 1 and step == 12:
            say("accident", time.time(), os.getpid())
            os.kill(os.getpid(), accident)
        averaging.step()
        if (step + 1) % 5 == 0:
            checkpoint.save(step + 1)
    return start, flat(list(model.parameters())).numpy().tobytes().hex()

if __name__ == "__main__":
    from gpu_validation import join_torchrun
    torch.set_num_threads(1)
    attempt = join_torchrun(timeout_s=float(sys.argv[2]))
    accident = int(sys.argv[3]) if attempt == 0 else None
    try:
        start, end = train(sys.argv[1], accident)
    except RuntimeError:
        say("noticed", time.time())
        raise
    say("finished", dist.get_rank(), attempt, start, end)
    dist.destroy_process_group()
"""


def uninterrupted(folder):
    """The same training in forked processes: {rank: parameters}."""
    space = {"__name__": "script"}
    exec(compile(SCRIPT, "script", "exec"), space)

    def work(place, emit):
        emit((place.rank, space["train"](folder)[1]))

    return dict(run_ranks(work, processes=2, hang_timeout_s=60))


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("accident", [signal.SIGKILL, signal.SIGSTOP], ids=lambda s: s.name)
def test_after_an_accident_all_ranks_resume_and_end_where_an_uninterrupted_run_ends(tmp_path, accident):
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    arguments = ["train.py", str(tmp_path / "checkpoints"), str(TIMEOUT_S), str(int(accident))]
    environment = os.environ | {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "2"}  # seconds from SIGTERM to SIGKILL

    result = subprocess.run(
        command + arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150, check=False
    )

    assert result.returncode == 0, result.stderr
    ((happened, process),) = re.findall(r"accident ([\d.]+) (\d+)", result.stdout)
    (noticed,) = re.findall(r"noticed ([\d.]+)", result.stdout)
    limit = TIMEOUT_S if accident is signal.SIGSTOP else 0
    assert float(noticed) - float(happened) < limit + 5  # a loaded machine may be late
    ended = re.findall(r"finished (\d) (\d) (\d+) (\w+)", result.stdout)
    assert {(attempt, start) for _, attempt, start, _ in ended} == {("1", "10")}
    assert {int(rank): end for rank, _, _, end in ended} == uninterrupted(tmp_path / "other")
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)  # nobody is left, not even stopped
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2 * 3


@pytest.mark.parametrize(
    ("settings", "environment", "error", "words"),
    [
        ({"timeout_s": 0}, {}, ValueError, "timeout_s must be > 0; got timeout_s = 0"),
        ({}, {}, RuntimeError, "RANK is not set: start the script by torchrun"),
        ({}, {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}, RuntimeError, "MASTER_PORT is not set"),
    ],
)
def test_misuse_is_refused_with_the_rule(monkeypatch, settings, environment, error, words):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(error, match=words):
        join_torchrun(**settings)


ORPHAN = """
import os, sys, time
from gpu_validation import join_torchrun
join_torchrun(timeout_s=60)
open(sys.argv[1] + "/" + os.environ["RANK"], "w").write(str(os.getpid()))
while True:
    time.sleep(0.05)  # as a rank that trains by itself and writes checkpoints
"""


@pytest.mark.thorough
def test_ranks_end_with_a_launcher_that_is_killed(tmp_path):
    (tmp_path / "train.py").write_text(ORPHAN)
    (tmp_path / "ranks").mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    launcher = subprocess.Popen(
        [*command, str(tmp_path / "ranks")], cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        ranks = until(lambda: [int(path.read_text() or 0) for path in (tmp_path / "ranks").iterdir()], 2)
        launcher.kill()
        launcher.wait(timeout=60)
        until(lambda: [] if any(map(alive, ranks)) else [0], 1)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait(timeout=60)
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)


def until(found, number, patience_s=100):
    """What ``found()`` returns as soon as it has so many elements, none of them 0 but for one alone."""
    deadline = time.monotonic() + patience_s
    while len(values := found()) < number or (number > 1 and not all(values)):
        assert time.monotonic() < deadline, values
        time.sleep(0.05)
    return values


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
