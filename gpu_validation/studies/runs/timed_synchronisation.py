"""Seconds of synchronisations by themselves: each behind a barrier, so that no wait for stragglers is in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...averaging.periodic_averaging import PeriodicAveraging
from ...processes.collectives import barrier
from ...timing import PaddedSteps


def timed_synchronisations(
    averaging: PeriodicAveraging,
    local_step: Callable[[int], Any],
    *,
    times: int,
    step_s: float,
    sleep: Callable[[], None] = lambda: None,
) -> list[float]:
    """Time single synchronisations, each after one local step; a first one warms up and is left out.

    Parameters
    ----------
    averaging : PeriodicAveraging
        With one local step a round.
    local_step : callable
        Changes the model as local step k does; given k = 0, 1, ...
    times : int
        How many are timed.
    step_s : float
        To how many seconds a local step is padded, because a synchronisation follows a sleep in a run too.
    sleep : callable
        Called after every synchronisation, and part of its time.

    Returns
    -------
    list of float
        Seconds of every synchronisation on this rank.
    """
    pacing, seconds = PaddedSteps(step_s), []
    for k in range(times + 1):
        with pacing:
            local_step(k)
        barrier()
        began = time.perf_counter()
        averaging.step()
        sleep()
        seconds.append(time.perf_counter() - began)
    return seconds[1:]
