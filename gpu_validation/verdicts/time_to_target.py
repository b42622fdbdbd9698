"""When a run reached a loss: trailing means of its curve, crossing times, and medians of few runs with exact intervals.

A curve holds losses of averaged models at points in time; between two points the earlier model is what one has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def smoothed(
    seconds: Sequence[float], losses: Sequence[float], at: float | np.ndarray, *, window_s: float
) -> np.ndarray:
    """Return mean of the curve over the ``window_s`` seconds before ``at``, fewer near the start; the shape of ``at``.

    Parameters
    ----------
    seconds : sequence of float
        Of the points, increasing, the first is 0.  Beyond the last point its loss goes on.

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
    """Return when the smoothed curve first comes down to ``target``, in seconds; infinite if it does not
    until its end.
    """
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
    share = (values[i - 1] - target) / (values[i - 1] - values[i])  # straight between corners, but for the start
    return float(corners[i - 1] + share * (corners[i] - corners[i - 1]))


def arrival(seconds: Sequence[float], losses: Sequence[float], target: float, *, share: float = 1 / 8) -> float:
    """Return when the mean loss over the last ``share`` of the time so far first comes down to ``target``; infinite if
    never.

    A run that does the same in a k-th of the time arrives k times sooner, exactly: a window of fixed length would let
    early targets look alike.  Straight between the points, the first of which is the start.
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
