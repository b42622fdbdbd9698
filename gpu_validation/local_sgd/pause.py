"""Pauses of a run, in which ranks may do unequal work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.distributed as dist

from ..distributed.collectives import ProcessTransport

DAY_S = 86_400.0


@contextmanager
def paused(
    transport: ProcessTransport, *, timeout_s: float, steps: int, leave_out: Callable[[float], None]
) -> Iterator[None]:
    """Inside, ranks may do unequal work; at the end all wait for the slowest, at most ``timeout_s`` seconds.

    ``leave_out`` receives the seconds that the pause has taken.

    Raises
    ------
    ValueError
        Unless timeout_s > 0.
    RuntimeError
        If a rank has ended or exceeds the time limit.
    """
    if not timeout_s > 0:
        raise ValueError(f"timeout_s must be > 0; got timeout_s = {timeout_s}")
    (room, spare), began = transport.waiting_room(timeout_s), time.monotonic()
    try:
        yield
    except BaseException:
        spare.failed = True  # other ranks wait in it
        raise
    try:
        dist.barrier(group=room)
    except RuntimeError as error:
        spare.failed = True
        raise RuntimeError(
            f"the pause after {steps} local steps did not end, because another rank has ended or is more than "
            f"timeout_s = {timeout_s:g} s late ({error})"
        ) from error
    leave_out(time.monotonic() - began)
