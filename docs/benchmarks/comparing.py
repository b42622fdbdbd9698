"""Calls in turns, and a ratio with its interval, of benchmarks that compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES, LEVEL = 2000, 0.95
TURNS, MOST_TURNS = 7, 100


def in_turns(calls: Sequence[Callable[[], object]], seconds: float) -> np.ndarray:
    """Processor seconds of this thread, shape (calls, turns): all calls one after the other in every turn.

    The order alternates; there are TURNS at least, and as many as take so many seconds a call; one turn warms up.
    """
    for call in calls:
        call()
    turns: list[list[float]] = []
    while len(turns) < TURNS or (np.sum(turns) < seconds * len(calls) and len(turns) < MOST_TURNS):
        taken = [0.0] * len(calls)
        for i in range(len(calls)) if len(turns) % 2 else reversed(range(len(calls))):
            start = time.thread_time()
            calls[i]()
            taken[i] = time.thread_time() - start
        turns.append(taken)
    return np.transpose(turns)


def quotient(above: Sequence[float], below: Sequence[float]) -> tuple[float, list[float]]:
    """Divide the median of one of two paired samples by the other's, with a bootstrap interval."""
    pairs = np.array([above, below])
    rows = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    medians = np.median(pairs[:, rows], axis=2)
    ends = np.quantile(medians[0] / medians[1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return round(float(np.median(above) / np.median(below)), 4), [round(float(end), 4) for end in ends]
