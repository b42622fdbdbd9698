"""A thread that does one thing after the other, so that the backward pass goes on meanwhile."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

import torch

Task = Callable[[], object]


class Background:
    """Does tasks in the order in which they come; after one that fails the others are left out until ``begin``.

    The thread is started by the first task, ends with this object, and is not waited for when the process ends.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def begin(self) -> None:
        """Wait for what is left of tasks before, and forget how they failed."""
        self._wait()
        self._failure = None

    def start(self, task: Task) -> None:
        """Let a task be done after those before it.

        Parameters
        ----------
        task : callable
            Takes no arguments; what it returns is dropped.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=_serve, args=(self._tasks,), daemon=True)
            self._thread.start()
            weakref.finalize(self, self._tasks.put, None)
        self._tasks.put(lambda: self._do(task))

    def finish(self) -> None:
        """Wait for all tasks, and raise what the first that failed has raised."""
        self._wait()
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # which holds this frame

    def _do(self, task: Task) -> None:
        if self._failure is None:
            try:
                task()
            except BaseException as error:  # for the thread that waits, whatever it is
                self._failure = error

    def _wait(self) -> None:
        if self._thread is not None:
            done = threading.Event()
            self._tasks.put(done.set)
            done.wait()


@torch.no_grad()
def _serve(tasks: SimpleQueue[Task | None]) -> None:
    """Take tasks until there is none; holds nothing of whoever gives them meanwhile."""
    while (task := tasks.get()) is not None:
        task()
        del task
