"""Progress in a stretch of training where the noise of trial rounds hides it: what they leave of a prior.

Before any trial a step of a choice is taken to be worth a synchronous one, within PRIOR, as in most trainings.  For a
progress r the differences ``fall - r * synchronous fall`` of the moments have mean zero; Student's law of their mean
over its error is what the trials say of r, also where the synchronous fall itself could be zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from bounds.estimate import student_quantile

PRIOR, FREEDOM = 0.2, 3  # scale and freedom of Student's law of log(progress): both halves of study `prediction`
CLEAR = 0.05  # standard error of progress, relative to it above 1, below which a quotient of means stands for itself
LOGS = np.linspace(-3.5, 1.5, 1001)  # of progress: from 1/33 to 4.5
LEAST = 1e-12  # of a variance, relative to the squared synchronous fall
SHARES = (np.arange(100) + 0.5) / 100


def times_of(falls: Sequence[float], synchronous: Sequence[float]) -> tuple[float, float]:
    """Return the quotient of the mean synchronous fall and another mean fall, and its standard error.

    Parameters
    ----------
    falls, synchronous : sequence of float
        Of the loss over the same steps, one a moment; of the same moments.

    Returns
    -------
    tuple of (float, float)
        Both infinite where one of the means is not positive.
    """
    each, others = np.array(falls), np.array(synchronous)
    if min(each.mean(), others.mean()) <= 0:
        return math.inf, math.inf
    slower = float(others.mean() / each.mean())
    off = others / each.mean() - slower * each / each.mean()
    return slower, math.sqrt(float(off @ off) / (each.size * (each.size - 1)))


def hides(falls: Sequence[float], synchronous: Sequence[float]) -> bool:
    """Tell whether the standard error of progress is large, so that its quotient does not stand for itself.

    Parameters
    ----------
    falls, synchronous : sequence of float
        As of ``times_of``.
    """
    each, others = np.array(falls), np.array(synchronous)
    if others.mean() <= 0:
        return True
    progress = each.mean() / others.mean()
    off = (each - progress * others) / others.mean()
    return bool(math.sqrt(off @ off / (each.size * (each.size - 1))) > CLEAR * max(progress, 1.0))


def quantiles_of(falls: Sequence[float], synchronous: Sequence[float]) -> np.ndarray:
    """Return quantiles of how many times as many steps are needed, rising, one for each of ``SHARES``.

    Parameters
    ----------
    falls, synchronous : sequence of float
        As of ``times_of``.
    """
    if not hides(falls, synchronous):
        slower, error = times_of(falls, synchronous)
        two_sided = np.abs(2 * SHARES - 1)
        points = np.array([student_quantile(level, len(falls) - 1) for level in two_sided.tolist()])
        return np.maximum(slower + error * np.sign(SHARES - 0.5) * points, np.exp(-LOGS[-1]))
    each, others = np.array(falls), np.array(synchronous)
    off = each - np.exp(LOGS)[:, None] * others
    squares = off.var(axis=1, ddof=1) / each.size + LEAST * max(float(others.mean() ** 2), 1e-300)
    student = -each.size / 2 * np.log1p(off.mean(axis=1) ** 2 / squares / (each.size - 1))
    before = -(FREEDOM + 1) / 2 * np.log1p((LOGS / PRIOR) ** 2 / FREEDOM)
    weights = np.exp(student + before - (student + before).max())
    below = np.cumsum(weights) / weights.sum()
    return np.exp(-np.interp(1 - SHARES, below, LOGS))


def mean_quantiles(stretches: Sequence[np.ndarray]) -> np.ndarray:
    """Return quantiles of the mean over independent stretches.

    Parameters
    ----------
    stretches : sequence of ndarray
        Quantiles of each, for the same shares.
    """
    total = reduce(lambda a, b: np.quantile(np.add.outer(a, b), SHARES), stretches)
    return total / len(stretches)
