"""Ranks that end with the process that has started them, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_S = 0.2  # where the kernel has no descriptors of processes


def die_with(parent: int) -> None:
    """Watch the parent process in a thread; end this process by SIGKILL when the parent ends or has ended.

    Parameters
    ----------
    parent : int
        Process id of the parent, which must be this process's own.

    Notes
    -----
    ``PR_SET_PDEATHSIG`` of the kernel fires when the *thread* ends that started this process, so it sends SIGCONT only:
    a running process ignores it, and a stopped one goes on and sees that its parent has ended.  The parent's id is
    compared after its descriptor is opened, so a new process of the same id is not taken for it.
    """
    descriptor = None
    with contextlib.suppress(OSError, AttributeError):  # no such process; an older kernel, or one that forbids it
        descriptor = os.pidfd_open(parent)
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent, descriptor), name="watch the parent", daemon=True).start()


def _watch(parent: int, descriptor: int | None) -> None:
    if descriptor is not None:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll()
    while os.getppid() == parent:  # with a descriptor: until the kernel has given this process another parent
        time.sleep(POLL_S if descriptor is None else 0.001)
    os.kill(os.getpid(), signal.SIGKILL)
