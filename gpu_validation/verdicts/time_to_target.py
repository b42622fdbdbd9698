"""Times at which a run reaches a loss, from trailing means of its curve.

A curve has the losses of averaged models at some times; between two times the earlier model is the current one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def smoothed(
    seconds: Sequence[float], losses: Sequence[float], at: float | np.ndarray, *, window_s: float
) -> np.ndarray:
    """Return the mean of the curve over the ``window_s`` seconds before ``at``, fewer near the start.

    ``seconds`` increase from 0.  After the last point its loss is constant.  The result has the shape of ``at``.

    Raises
    ------
    ValueError
        For other points, or a window that is not positive.
    """
    times, values = np.asarray(seconds, float), np.asarray(losses, float)
    if times.shape != values.shape or times.size == 0 or times[0] != 0 or (np.diff(times) <= 0).any():
        raise ValueError("a curve needs one loss for each of increasing times that begin at 0")
    if not window_s > 0:
        raise ValueError(f"window_s must be > 0; got window_s = {window_s}")
    ends = np.asarray(at, float)
    begins = np.maximum(ends - window_s, 0.0)
    areas = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])

    def area(t: np.ndarray) -> np.ndarray:
        i = np.clip(np.searchsorted(times, t, side="right") - 1, 0, None)
        return areas[i] + values[i] * (t - times[i])

    lengths = ends - begins
    means = (area(ends) - area(begins)) / np.where(lengths > 0, lengths, 1.0)
    return np.where(lengths > 0, means, values[0])


def time_to_loss(seconds: Sequence[float], losses: Sequence[float], target: float, *, window_s: float) -> float:
    """Return the first time in seconds at which the smoothed curve reaches ``target``; inf if it never does."""
    times = np.asarray(seconds, float)
    corners = np.unique(np.concatenate([times, times + window_s]))
    corners = corners[corners <= times[-1]]
    values = smoothed(seconds, losses, corners, window_s=window_s)
    below = np.flatnonzero(values <= target)
    if below.size == 0:
        return math.inf
    i = int(below[0])
    if i == 0:
        return float(corners[0])
    share = (values[i - 1] - target) / (values[i - 1] - values[i])  # linear between corners, except at the start
    return float(corners[i - 1] + share * (corners[i] - corners[i - 1]))


def arrival(seconds: Sequence[float], losses: Sequence[float], target: float, *, share: float = 1 / 8) -> float:
    """Return the first time at which the mean loss over the last ``share`` of the time reaches ``target``, or inf.

    If a run does the same in 1/k of the time, its arrival is exactly k times earlier.  A window of fixed length would
    not separate early targets.  The means are interpolated linearly, starting with the first loss.
    """
    times = np.asarray(seconds, float)
    if losses[0] <= target:
        return 0.0
    means = [losses[0], *(float(smoothed(seconds, losses, t, window_s=share * t)) for t in times[1:])]
    i = next((i for i, mean in enumerate(means) if mean <= target), 0)
    if not i:
        return math.inf
    part = (means[i - 1] - target) / (means[i - 1] - means[i])
    return float(times[i - 1] + part * (times[i] - times[i - 1]))
