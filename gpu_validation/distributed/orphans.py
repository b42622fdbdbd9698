"""Ranks that end with the process that has started them, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal

SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>


def die_with(parent: int) -> None:
    """Ask the kernel for a SIGKILL when the parent ends, however it ends; die now if it has ended already."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
