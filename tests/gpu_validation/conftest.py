"""What several test files of the harness look at."""

import fcntl
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmokeRun:
    """``ratedist run smoke`` as a user meets it."""

    result: subprocess.CompletedProcess
    folder: Path


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory):
    """One run of the whole preset by the command line, for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    out = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "smoke_run"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = out / "result.pickle"
        if not record.exists():
            command = [sys.executable, "-m", "gpu_validation", "run", "smoke", "--seed", "0", "--out", str(out)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
            record.write_bytes(pickle.dumps(result))
        return SmokeRun(pickle.loads(record.read_bytes()), out / "smoke")


@dataclass
class DaskCluster:
    """A scheduler and workers of one thread each, real processes at free ports of 127.0.0.1."""

    folder: Path
    processes: list[subprocess.Popen] = field(default_factory=list)
    address: str = ""

    @property
    def scheduler(self):
        return self.processes[0]

    def start(self, program, *options, until):
        """Start a program and wait for words in what it logs."""
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", "--host", "127.0.0.1"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        path = self.folder / f"{len(self.processes)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*command, *options], stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self.processes.append(process)
        deadline = time.monotonic() + 60
        while until not in path.read_text():
            assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.05)

    def start_scheduler(self):
        self.start("scheduler", "--port", "0", "--idle-timeout", "10 minutes", until="Scheduler at:")
        log = (self.folder / "0.log").read_text()
        self.address = re.search(r"Scheduler at: *(tcp://[\d.:]+)", log)[1]

    def start_worker(self, *options):
        own = ("--nthreads", "1", "--local-directory", str(self.folder))
        self.start("worker", self.address, *own, *(options or ("--no-nanny",)), until="Registered to:")

    def end(self):
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


@pytest.fixture
def dask_scheduler(tmp_path, monkeypatch):
    """A scheduler of Dask that ``--on dask`` finds, without workers."""
    cluster = DaskCluster(tmp_path / "dask")
    cluster.folder.mkdir()
    try:
        cluster.start_scheduler()
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.address)
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def dask_cluster(dask_scheduler):
    """The same with two workers."""
    dask_scheduler.start_worker()
    dask_scheduler.start_worker()
    return dask_scheduler
