"""Scheduling policy of a rank; real-time scheduling keeps other programs out of the timings."""

from __future__ import annotations

import ctypes
import os
from typing import Literal, get_args

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
