"""Work of a transport in a thread, while the process trains."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import torch

T = TypeVar("T")

PATIENCE_S = 2.0  # wait for work in flight, at the end of the process

_running: set[threading.Thread] = set()


@atexit.register
def _wait_at_exit() -> None:
    """Wait for messages in flight, whose threads would abort the process, but not for ended ranks."""
    until = time.monotonic() + PATIENCE_S
    for thread in list(_running):
        thread.join(max(until - time.monotonic(), 0.0))


class Finished(Generic[T]):
    """A result that exists already, as between simulated workers and after a restart.

    Parameters
    ----------
    value
        The result.
    seconds : float, seconds, optional
        Duration of the work; nan if unknown.
    """

    def __init__(self, value: T, seconds: float = float("nan")) -> None:
        self.value, self.seconds = value, seconds

    def check(self) -> None:
        """Do nothing: the work has not failed."""

    def result(self) -> T:
        """Return the result."""
        return self.value


class InThread(Generic[T]):
    """Work in a thread, which begins after the previous work has ended.

    Collectives wait without holding Python's lock, so the training continues.  On a GPU they use a separate stream that
    starts after the work queued so far.

    Parameters
    ----------
    work : callable
        Function without arguments.
    after : InThread or None
        Previous work; None for none.
    device : device
        Device of the tensors to send.
    """

    def __init__(self, work: Callable[[], T], after: InThread | None, device: torch.device) -> None:
        self._work: Callable[[], T] | None = work
        self._after, self._device = after, device
        self._value: T | None = None
        self._failure: BaseException | None = None
        self.seconds = float("nan")
        self._ready = torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None
        self.thread = threading.Thread(target=self._run, daemon=True)
        _running.add(self.thread)
        self.thread.start()

    def check(self) -> None:
        """Raise the error of the work, if it has failed."""
        if not self.thread.is_alive() and self._failure is not None:
            raise self._failure

    def result(self) -> T:
        """Wait for the end; return the result or raise the error of the work."""
        self.thread.join()
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]  # what the work has returned

    def _run(self) -> None:
        if self._after is not None:
            self._after.thread.join()
            self._after = None
        work, self._work = self._work, None  # drop the reference, which may form a cycle
        assert work is not None  # run once
        began = time.monotonic()
        try:
            self._value = self._on_stream(work) if self._ready is not None else work()
        except BaseException as error:  # report any failure to the training thread
            self._failure = error
        self.seconds = time.monotonic() - began
        _running.discard(self.thread)

    def _on_stream(self, work: Callable[[], T]) -> T:
        stream = torch.cuda.Stream(self._device)
        assert self._ready is not None  # on a GPU
        stream.wait_event(self._ready)
        with torch.cuda.stream(stream):
            value = work()
        stream.synchronize()
        return value


Flight = Finished[T] | InThread[T]
