"""Interface of transports, which exchange vectors and messages between ranks, and their work in a thread."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch

from operators import Message

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


class VectorTransport(Protocol):
    """Transport of vectors; a process hosts one rank, or all of them as simulated workers.

    Attributes
    ----------
    size : int
        Number of ranks.
    ranks : sequence of int
        Ranks hosted here; vectors are passed and returned in their order.
    """

    size: int
    ranks: Sequence[int]

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors for every rank hosted here, summed in rank order."""

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return the vectors of the sources of every rank hosted here, by rank; a rank is never its own source."""


class Transport(VectorTransport, Protocol):
    """Transport of vectors, messages, numbers and the initial model."""

    def gather(
        self, messages: Sequence[Message | int | None], *, position: int, exact: Sequence[int] | None = None
    ) -> dict[int, Message]:
        """Return all ranks' messages by rank.

        ``messages`` are those of the ranks hosted here, or the numbers of refusals.
        """

    def scatter(
        self,
        messages: Sequence[Sequence[Message] | int | None],
        *,
        position: int,
        exact: Sequence[int] | None = None,
    ) -> tuple[list[dict[int, Message]], list[int]]:
        """Return the messages for every rank hosted here by sender, and the bits that each rank has sent.

        ``messages`` are those of the ranks hosted here, one per receiver, or the numbers of refusals.
        """

    def all_gather_floats(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the rows of all ranks, in rank order."""

    def all_gather_ints(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the rows of all ranks, in rank order."""

    def all_gather_int(self, numbers: Sequence[int]) -> list[int]:
        """Return an integer from each rank, in rank order."""

    def broadcast(self, tensors: Sequence[Sequence[torch.Tensor]]) -> list[int]:
        """Overwrite all ranks' tensors by those of rank 0; return the ranks hosted here whose tensors differed."""

    def uncounted(self) -> AbstractContextManager[None]:
        """Return a context in which bytes are sent but not counted."""

    def start(self, work: Callable[[], T]) -> Flight[T]:
        """Start work of this transport, in order of the calls.

        Nothing else may use the transport until the result has been taken.
        """

    def in_nodes(self, ranks_per_node: int) -> NodeLinks:
        """Return the links of the ranks hosted here, inside nodes and between them."""


@dataclass(frozen=True)
class NodeLinks:
    """Links of ranks in nodes; consecutive ranks share a node, as torchrun numbers them.

    Parameters
    ----------
    inside : mapping of int to Transport
        Links between the ranks of a node, by node; a rank's number there is its place.
    between : mapping of int to Transport
        Links between the ranks with one place in all nodes, by place; a rank's number there is its node.
    """

    inside: Mapping[int, Transport]
    between: Mapping[int, Transport]
