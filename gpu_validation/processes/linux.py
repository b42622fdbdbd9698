"""Requests to the Linux kernel: to end with the process that started this one, and real-time scheduling."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading
import time
from typing import Literal, get_args

PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_S = 0.2  # where the kernel has no descriptors of processes


def end_with_parent(parent: int) -> None:
    """Monitor the parent process in a thread; kill this process when the parent has ended.

    ``parent`` is the id of this process's parent.

    Notes
    -----
    ``PR_SET_PDEATHSIG`` fires when the starting *thread* ends, so it sends only SIGCONT.  A running process ignores it,
    and a stopped one continues and checks its parent.  The parent's id is compared after its descriptor is opened, so
    that a new process with the same id is not mistaken for it.
    """
    descriptor = None
    with contextlib.suppress(OSError, AttributeError):  # no such process, or no support by the kernel
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


Scheduling = Literal["normal", "realtime"]
PRIORITY = 1  # the lowest real-time priority is above every normal process
SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK of <sys/prctl.h>


def schedule(wanted: Scheduling) -> str:
    """Set the scheduling policy of this process if the system allows it; return the policy in force.

    "realtime" is SCHED_RR at the lowest priority and needs a privilege.  Without the privilege only the timer slack is
    reduced to a nanosecond.

    Raises
    ------
    ValueError
        Unless ``wanted`` is "normal" or "realtime".
    """
    if wanted not in get_args(Scheduling):
        raise ValueError(f"scheduling must be normal or realtime; got {wanted!r}")
    if wanted == "normal":
        return "normal"
    ctypes.CDLL(None).prctl(SET_TIMER_SLACK, 1, 0, 0, 0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except OSError as refusal:
        return f"normal (SCHED_RR refused: {refusal.strerror})"
    return f"SCHED_RR, priority {PRIORITY}"
