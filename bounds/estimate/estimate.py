"""What every estimator returns: a value, an interval at a stated level, and the bias one knows of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..interval import Interval
from .student import student_quantile


@dataclass(frozen=True)
class Estimate:
    """A number estimated from samples.

    Parameters
    ----------
    value : float
        The point estimate.
    interval : Interval
        Covers the truth with probability ``level`` up to ``bias``; an end is infinite where the samples say nothing.
    level : float
        Confidence of the interval, 0 <= level < 1; 0 where nothing was measured.
    bias : str, optional
        The known systematic error, in one sentence; "" if there is none.

    Notes
    -----
    An estimated constant never makes a bound a verdict.
    """

    value: float
    interval: Interval
    level: float
    bias: str = ""

    def scaled(self, factor: float, *, bias: str | None = None) -> Estimate:
        """Return the estimate of factor times the quantity; factor > 0.

        Parameters
        ----------
        factor : float
            What the value is multiplied by.
        bias : str or None, optional
            What distorts the result, in words.
        """
        interval = Interval(self.interval.lo * factor, self.interval.hi * factor)
        return Estimate(self.value * factor, interval, self.level, self.bias if bias is None else bias)


def mean_estimate(values: Sequence[float] | np.ndarray, level: float, *, lower: float = -math.inf) -> Estimate:
    """Return the mean of independent values with Student's interval; infinite with a single value.

    Parameters
    ----------
    values : sequence of float or ndarray
        Independent measurements, shape (n,).
    level : float
        Confidence of the interval, 0 < level < 1.
    lower : float, optional
        The quantity is known to be at least this.

    Raises
    ------
    ValueError
        For no value, one that is not finite, or a level outside (0, 1).
    """
    x = finite_vector("values", values)
    check_level(level)
    mean = float(x.mean())
    if x.size == 1:
        return Estimate(mean, Interval(lower, math.inf), level)
    half = student_quantile(level, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Estimate(mean, Interval(max(mean - half, lower), max(mean + half, lower)), level)


def finite_vector(name: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the values as a float64 array of shape (n,), n >= 1.

    Raises
    ------
    ValueError
        If empty or not finite.
    """
    x = np.asarray(values, np.float64).reshape(-1)
    if x.size == 0:
        raise ValueError(f"{name} needs at least one value; got none")
    if not np.all(np.isfinite(x)):
        i = int(np.argmin(np.isfinite(x)))
        raise ValueError(f"{name} must be finite; got {x[i]} at index {i}")
    return x


def check_level(level: float) -> float:
    """Return the level.

    Raises
    ------
    ValueError
        Unless 0 < level < 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must satisfy 0 < level < 1; got level = {level}")
    return level
