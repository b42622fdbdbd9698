"""Engines, which run calls as jobs that end with an answer or lose their worker; the local one starts processes."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


class WorkerLost(RuntimeError):  # noqa: N818  a public name
    """Raised if a worker has ended without an answer: killed, out of memory, out of time."""


class EngineLost(WorkerLost):
    """Raised if no worker will come any more, because the scheduler or all workers have gone."""


@dataclass(frozen=True)
class Call:
    """A function with its arguments, pickled, and the folders of its modules.

    Parameters
    ----------
    pickled : bytes
        Function and arguments.
    folders : tuple of str
        Module search path, after the worker's own.
    """

    pickled: bytes
    folders: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], *arguments: Any) -> Self:
        """Return the call of a function.

        Parameters
        ----------
        function : callable
            A function that can be imported by name.
        *arguments
            Its arguments, which must be picklable.
        """
        folders = tuple(os.path.abspath(folder) for folder in sys.path)
        return cls(pickle.dumps((function, arguments)), folders)

    def __call__(self) -> Any:
        """Call the function and return its result."""
        sys.path += [folder for folder in self.folders if folder not in sys.path]
        function, arguments = pickle.loads(self.pickled)
        return function(*arguments)


class Job(ABC):
    """A running call."""

    @abstractmethod
    def done(self) -> bool:
        """Return whether it has ended in any way, without waiting."""

    @abstractmethod
    def answer(self) -> Any:
        """Return the result of the call; it must be done.

        Raises
        ------
        WorkerLost
            If there is no result.
        """

    @abstractmethod
    def cancel(self) -> None:
        """End the job and all its processes; do nothing if it has ended."""


class Engine(ABC):
    """Runs calls.

    Parameters
    ----------
    jobs : int
        Number of jobs at a time, >= 1.
    shares_machines : bool
        Whether two jobs may run on one machine at the same time.
    """

    jobs: int
    shares_machines: bool

    @abstractmethod
    def submit(self, call: Call) -> Job:
        """Start a call without waiting for it.

        Parameters
        ----------
        call : Call
            Call to run.
        """

    @abstractmethod
    def close(self) -> None:
        """Remove the engine's files and other traces; all jobs must have ended or been cancelled."""


ENGINES = ("local", "slurm", "dask")


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
