"""User-space switch between the ranks' TAP devices: start it, read its counters, end it.

It is a separate C program, so that neither the ranks nor the parent's interpreter delay a frame.  A frame needs about
6 us of processor time, nearly all in the kernel.  At real-time priority, which wakes the switch for every single frame,
it needs 15 to 22 us.  A Python loop that only adds the delay needs 7 to 10 us.  Two cores handle about 100 Mbit/s at
four ports besides the ranks (measured at 98ec0238).  ``late_max_s`` shows the delay of a run.
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
    """Counters of the switch; matrices have shape (m, m), sender first.

    Parameters
    ----------
    bytes : ndarray
        Bytes received from the senders.
    frames : ndarray
        Frames received from the senders.
    lost : ndarray
        Frames dropped by the set loss rate.
    dropped : ndarray
        Frames dropped because a queue was full.
    late_mean_s : float, seconds
        Mean lateness of forwarded frames, which shows whether the switch keeps up.
    late_max_s : float, seconds
        Largest lateness.
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
        Namespace with the right to enter the others.
    ranks : sequence of Space
        Namespaces of the ranks.
    shape : Shape
        Rate, delay, jitter and loss of the links.
    seed : int
        Seed of loss and jitter.

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
        """Return the current counters."""
        words = np.frombuffer(self._memory, np.uint64).astype(np.int64)
        table = words[:-3].reshape(self.size, self.size, KINDS)
        sent, late, latest = (int(word) for word in words[-3:])
        arrived, frames, lost, dropped = (table[..., kind] for kind in range(KINDS))
        return SwitchCount(arrived, frames, lost, dropped, late / max(sent, 1) * 1e-9, latest * 1e-9)

    def close(self) -> None:
        """End the process, and with it its devices; may be called twice."""
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
