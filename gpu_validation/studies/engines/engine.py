"""Interface of engines: calls are submitted as jobs, which end with an answer or lose their worker."""

from __future__ import annotations

import os
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
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
