"""Processes of this machine, a new one for every call."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from .engine import Call, Engine, Job, WorkerLost

CALL, ANSWER, LOG = "call.pickle", "answer.pickle", "log.txt"


class Local(Engine):
    """New processes of this machine, which end with the process that has started them.

    Parameters
    ----------
    jobs : int
        Number of jobs at a time, >= 1.
    folder : Path
        Folder of calls, answers and logs of running jobs.
    """

    def __init__(self, jobs: int, folder: Path) -> None:
        self.jobs, self.shares_machines = jobs, jobs > 1
        self._folder = folder

    def submit(self, call: Call) -> Process:
        """Start a process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        (folder / CALL).write_bytes(pickle.dumps(call))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(call.folders)}
        command = [sys.executable, "-m", "gpu_validation.studies.engines.worker", str(folder), str(os.getpid())]
        with (folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        return Process(process, folder)

    def close(self) -> None:
        """Remove calls, answers and logs."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Process(Job):
    """A process in its own session.

    Parameters
    ----------
    process : subprocess.Popen
        The running process.
    folder : Path
        Folder of its answer and log.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process, self._folder = process, folder

    def done(self) -> bool:
        return self._process.poll() is not None

    def answer(self) -> Any:
        return pickle.loads(self.pickled_answer())

    def pickled_answer(self) -> bytes:
        """Return the pickled answer, to forward it.

        Raises
        ------
        WorkerLost
            If there is no answer.
        """
        try:
            return (self._folder / ANSWER).read_bytes()
        except FileNotFoundError:
            status = self._process.wait()
            cause = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            lines = (self._folder / LOG).read_text(errors="replace").splitlines()
            raise WorkerLost(": ".join([f"its process {cause}", *lines[-1:]])) from None

    def cancel(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its ranks are in the same group
        self._process.wait()
