"""The user-space switch between the ranks' TAP devices: starts it, reads its counters, ends it.

It is a C program of its own, so that neither the ranks nor the parent's interpreter delay a frame.  A frame costs it
about 6 us of processor time, nearly all of it in the kernel (15 to 22 us at real-time priority, which wakes it for
every single frame), against 7 to 10 us for a loop in Python that makes the delay and nothing else; so two cores hold
some 100 Mbit/s at four ports beside the ranks.  docs/benchmarks/network.py measures it, ``late_max_s`` tells in a run.
"""

from __future__ import annotations

import mmap
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .compiled import compiled
from .links import QUEUE_BYTES
from .namespaces import COMMAND_TIMEOUT_S, NetworkUnavailable, Space, await_ready, inside
from .shape import Shape

SOURCE = Path(__file__).with_name("switch.c")
KINDS = 4  # bytes, frames, lost, dropped
REAL_TIME_PRIORITY = 2  # above the ranks, where real-time scheduling is allowed


@dataclass(frozen=True)
class SwitchCount:
    """What the switch has seen so far; matrices have shape (m, m), sender first.

    Parameters
    ----------
    bytes : ndarray
        Bytes received from the senders.
    frames : ndarray
        Frames received from the senders.
    lost : ndarray
        By the chosen loss rate.
    dropped : ndarray
        Because a queue was full.
    late_mean_s : float, seconds
        How long after its due time a frame was sent on, on average; it tells whether the switch keeps up.
    late_max_s : float, seconds
        How long at most.
    """

    bytes: np.ndarray
    frames: np.ndarray
    lost: np.ndarray
    dropped: np.ndarray
    late_mean_s: float
    late_max_s: float


class Switch:
    """A running switch with one TAP device in each rank's namespace.

    Parameters
    ----------
    hub : Space
        A namespace with the right to enter the others.
    ranks : sequence of Space
        Numbers of the ranks.
    shape : Shape
        Rate, delay, jitter and loss of the links.
    seed : int
        Of loss and jitter.

    Raises
    ------
    NetworkUnavailable
        If it cannot be compiled or started.
    """

    def __init__(self, hub: Space, ranks: Sequence[Space], shape: Shape, *, seed: int) -> None:
        self.size = len(ranks)
        words = KINDS * self.size**2 + 3
        file = os.memfd_create("ratedist-switch")
        try:
            os.ftruncate(file, 8 * words)
            self._memory = mmap.mmap(file, 8 * words)
            with compiled(SOURCE) as program:
                self._process = self._start([str(program), *_arguments(shape, seed, file, ranks)], hub, ranks, file)
                self._begin()
        finally:
            os.close(file)

    @staticmethod
    def _start(command: list[str], hub: Space, ranks: Sequence[Space], file: int) -> subprocess.Popen[bytes]:
        descriptors = {file, *hub.descriptors, *(d for space in ranks for d in space.descriptors)}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                [*inside(hub), *command], stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=tuple(descriptors)
            )
        except OSError as error:
            raise NetworkUnavailable(f"the switch cannot be started: {error}") from error

    def _begin(self) -> None:
        try:
            await_ready(self._process, "the switch")
        except NetworkUnavailable:
            self.close()
            raise

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def count(self) -> SwitchCount:
        """Return the counters up to now."""
        words = np.frombuffer(self._memory, np.uint64).astype(np.int64)
        table = words[:-3].reshape(self.size, self.size, KINDS)
        sent, late, latest = (int(word) for word in words[-3:])
        arrived, frames, lost, dropped = (table[..., kind] for kind in range(KINDS))
        return SwitchCount(arrived, frames, lost, dropped, late / max(sent, 1) * 1e-9, latest * 1e-9)

    def close(self) -> None:
        """End the process; its devices vanish with it.  May be called twice."""
        self._process.kill()
        self._process.wait(COMMAND_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _arguments(shape: Shape, seed: int, file: int, ranks: Sequence[Space]) -> list[str]:
    numbers = (
        round(shape.rate_bit_per_s or 0),
        round(shape.delay_s * 1e9),
        round(shape.jitter_s * 1e9),
        round(shape.loss * 2**32),
        seed,
        QUEUE_BYTES,
        shape.mtu,
        REAL_TIME_PRIORITY,
        file,
        *(space.net for space in ranks),
    )
    return [str(number) for number in numbers]
