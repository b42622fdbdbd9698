"""What an engine is: calls go in, jobs come out, each of which ends with an answer or loses its worker."""

from __future__ import annotations

import os
import pickle
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


class WorkerLost(RuntimeError):  # noqa: N818  what has happened, not a mistake
    """A worker has ended without an answer: killed, out of memory, out of time."""


class EngineLost(WorkerLost):
    """No worker will come any more: whoever hands out the calls has gone, or nobody takes them."""


@dataclass(frozen=True)
class Call:
    """A function and its arguments, pickled, beside the folders in which its modules are found.

    Parameters
    ----------
    pickled : bytes
        Function and arguments.
    folders : tuple of str
        Where the modules are looked for after the worker's own.
    """

    pickled: bytes
    folders: tuple[str, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], *arguments: Any) -> Self:
        """Return the call of a function.

        Parameters
        ----------
        function : callable
            A module's, by name.
        *arguments
            What it is called with; everything that pickle takes.
        """
        folders = tuple(os.path.abspath(folder) for folder in sys.path)
        return cls(pickle.dumps((function, arguments)), folders)

    def __call__(self) -> Any:
        """Return what the function returns."""
        sys.path += [folder for folder in self.folders if folder not in sys.path]
        function, arguments = pickle.loads(self.pickled)
        return function(*arguments)


class Job(ABC):
    """One call under way."""

    @abstractmethod
    def done(self) -> bool:
        """Return whether it has ended, in whatever way; does not wait."""

    @abstractmethod
    def answer(self) -> Any:
        """Return what the call has returned, once it is done.

        Raises
        ------
        WorkerLost
            If it has returned nothing.
        """

    @abstractmethod
    def cancel(self) -> None:
        """End it and all its processes; nothing happens to one that has ended."""


class Engine(ABC):
    """Where calls are carried out.

    Parameters
    ----------
    jobs : int
        How many at a time, >= 1.
    shares_machines : bool
        Whether two of them may run on one machine at the same time.
    """

    jobs: int
    shares_machines: bool

    @abstractmethod
    def submit(self, call: Call) -> Job:
        """Begin a call; does not wait for it.

        Parameters
        ----------
        call : Call
            What to carry out.
        """

    @abstractmethod
    def close(self) -> None:
        """Remove what the engine has left, on the disk and elsewhere; all jobs have ended or are cancelled."""
