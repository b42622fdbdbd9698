"""Confidence intervals for a mean that hold their level whatever the law, for values in a declared range.

Let y >= floor be drawn with conditional means at most mu.  For 0 <= stake <= 1 put ::

    f = 1 + stake ((y - floor) / (mu - floor) - 1) >= 0,     E f <= 1.

So the product of f over the draws is a nonnegative supermartingale started at 1, and so is its mean over several
stakes; by Markov's inequality it exceeds 1/level with probability at most ``level``.  Every mu at which it does is
rejected; the product decreases in mu, so that what is left is an interval above a lower end (Hoeffding 1963 and
Waudby-Smith and Ramdas 2024 bet in the same way).  The upper end is the lower end of ceiling - y.  Nothing is assumed
of the law but its range: a lazy law that is equal n times out of n gets a wide interval, not a point.

Every interval contains the measured mean: an end that the draws put on the wrong side of it is moved to it.  A wider
interval misses no more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..records.sample import Sample

Interval = tuple[float, float]
ACQUIT = 0.05  # chance that an end which acquits misses; the end which accuses misses with the run's level
CAP = 4  # times an upper bound: where no largest value is declared, a larger draw leaves the upper end open
NO_LARGEST = f"a draw exceeds {CAP} times the bound and no largest value is declared: draws cannot bound the mean above"
STAKES = np.concatenate([[1.0, 0.99, 0.95], np.geomspace(0.9, 1e-5, 30)])
RATES = np.geomspace(1e-4, 3, 40)  # times one over the standard deviation
FURTHEST = 1e9  # spreads from the draws, beyond which a mean is taken for unbounded
BISECTIONS = 50


def mean_interval(sample: Sample, *, below: float, above: float, floor: float, ceiling: float = math.inf) -> Interval:
    """Return ends of which each misses the mean with at most its probability.

    Parameters
    ----------
    sample : Sample
        Independent draws, or draws whose conditional means all lie in the interval that is asked for.
    below : float
        Chance that the lower, the upper end misses, in (0, 1).
    above : float
        Chance that the lower, the upper end misses, in (0, 1).
    floor : float
        Declared range of every single draw; an infinite one leaves its end open.
    ceiling : float, optional
        Declared range of every single draw; an infinite one leaves its end open.

    Raises
    ------
    ValueError
        If a draw lies outside the declared range.
    """
    if not (floor <= sample.low and sample.high <= ceiling):
        raise ValueError(
            f"the draws must lie in the declared range [{floor:g}, {ceiling:g}]; "
            f"got [{sample.low:g}, {sample.high:g}]: declare the range of the law, not of a wish"
        )
    if not math.isfinite(sample.mean):
        return _containing((-math.inf, math.inf), sample)
    counts = np.array([count for _, _, count in sample.atoms], float)
    lower, upper = -math.inf, math.inf
    if math.isfinite(floor):
        lower = floor + _lower_end(np.array([low - floor for low, _, _ in sample.atoms]), counts, below)
    if math.isfinite(ceiling):
        upper = ceiling - _lower_end(np.array([ceiling - high for _, high, _ in sample.atoms]), counts, above)
    return _containing((lower, upper), sample)


def variance_interval(sample: Sample, variance: float, *, below: float, above: float) -> Interval:
    """Return ends for a mean whose draws have at most a declared ``variance``, whatever their range (Catoni 2012).

    With psi(x) = log(1 + x + x^2/2) for x >= 0 and psi(-x) = -psi(x), E exp psi(rate (y - mu)) is at most 1 + rate^2
    variance/2; Markov's inequality does the rest.

    Parameters
    ----------
    below : float
        As in ``mean_interval``.
    above : float
        As in ``mean_interval``.
    """
    return _from_variance(_catoni_end, sample, variance, below, above)


def anytime_interval(sample: Sample, variance: float, *, below: float, above: float) -> Interval:
    """Return ends for a mean whose draws have at most a declared ``variance``, also if one stops when one likes.

    The capital of ``variance_interval`` at one fixed rate is a nonnegative supermartingale, and so is its mean over
    several rates, which do not depend on the number of draws (Ville's inequality).

    Parameters
    ----------
    below : float
        As in ``mean_interval``.
    above : float
        As in ``mean_interval``.
    """
    return _from_variance(_anytime_end, sample, variance, below, above)


def interval_below(sample: Sample, bound: float, level: float, *, floor: float, ceiling: float | None) -> Interval:
    """Return the interval that judges "the mean is at most ``bound``": ``level`` below, ACQUIT above.

    Parameters
    ----------
    ceiling : float or None
        The largest single draw; None if none is declared.  Then CAP times the bound stands for it, as long as no draw
        exceeds that: values rarer than the draws show may be of any size.  After a larger draw the upper end is open.
    """
    if ceiling is None:
        cap = floor + CAP * max(bound - floor, 0.0)
        ceiling = cap if sample.high <= cap else math.inf
    return mean_interval(sample, below=level, above=ACQUIT, floor=floor, ceiling=ceiling)


def student_interval(sample: Sample, level: float) -> Interval:
    """Return Student's two-sided interval, for means that decide nothing: its level is exact for Gaussian draws only.

    One draw, equal draws and infinite draws give an infinite interval: they say nothing about the spread.
    """
    from scipy.special import stdtrit

    if sample.n < 2 or sample.low == sample.high or not math.isfinite(sample.sd):
        return -math.inf, math.inf
    half = float(stdtrit(sample.n - 1, 1 - level / 2)) * sample.sd / math.sqrt(sample.n)
    return sample.mean - half, sample.mean + half


def share_interval(hits: int, trials: int, level: float) -> Interval:
    """Return Clopper and Pearson's two-sided interval for a probability, of independent trials."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, level / 2))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - level / 2))
    return low, high


def _containing(interval: Interval, sample: Sample) -> Interval:
    """Return the interval widened to contain the mean; an infinite mean is refuted or shown by itself.

    A law with a finite mean has no infinite draws, so a sample with one rejects every finite mean at any level.
    """
    if math.isinf(sample.mean):
        return sample.mean, sample.mean
    return min(interval[0], sample.mean), max(interval[1], sample.mean)


def _from_variance(
    end: Callable[[np.ndarray, np.ndarray, float, float], float],
    sample: Sample,
    variance: float,
    below: float,
    above: float,
) -> Interval:
    """Return both ends of a mean by ``end``, which computes the lower one of values with counts."""
    if not variance >= 0:
        raise ValueError(f"a declared variance must be >= 0; got {variance}: correct the claim")
    if not math.isfinite(sample.mean) or math.isinf(variance):
        return _containing((-math.inf, math.inf), sample)
    counts = np.array([count for _, _, count in sample.atoms], float)
    lows, highs = (np.array([atom[i] for atom in sample.atoms]) for i in (0, 1))
    ends = end(lows, counts, variance, below), -end(-highs, counts, variance, above)
    return _containing(ends, sample)


def _lower_end(values: np.ndarray, counts: np.ndarray, level: float) -> float:
    """Return the largest mean that draws >= 0 reject as an upper bound, or 0 if they reject none."""
    inside, outside = 0.0, float(values @ counts / counts.sum())
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        if middle in (inside, outside):
            break
        if _log_capital(values / middle, counts) >= -math.log(level):
            inside = middle
        else:
            outside = middle
    return inside


def _catoni_end(values: np.ndarray, counts: np.ndarray, variance: float, level: float) -> float:
    """Return the largest mean that the draws reject as an upper bound; minus infinity if they reject none."""
    n, nats = counts.sum(), -math.log(level)
    if variance == 0:
        return float(values.min())
    rate = math.sqrt(2 * nats / (n * variance))

    def capital(mean: float) -> float:
        x = rate * (values - mean)
        influence = np.sign(x) * np.log1p(np.abs(x) + x**2 / 2)
        return float(influence @ counts) - n * rate**2 * variance / 2 - nats

    outside = float(values.max())
    step = math.sqrt(2 * variance * nats / n) + outside - float(values.min())
    inside = outside - step
    while capital(inside) < 0:
        step *= 2
        inside = outside - step
        if not math.isfinite(inside) or step > 1e9 * (math.sqrt(variance) + abs(outside)):
            return -math.inf
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if capital(middle) >= 0 else (inside, middle)
    return inside


def _anytime_end(values: np.ndarray, counts: np.ndarray, variance: float, level: float) -> float:
    """Return the largest mean that the draws reject as theirs from above; minus infinity if they reject none."""
    if variance == 0:
        return float(values.min())
    rates = RATES / math.sqrt(variance)
    n, spread = counts.sum(), math.sqrt(variance) + float(values.max() - values.min())

    def rejected(mean: float) -> bool:
        x = rates[:, None] * (values - mean)
        logs = (np.sign(x) * np.log1p(np.abs(x) + x**2 / 2)) @ counts - n * RATES**2 / 2
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).mean())) >= -math.log(level)

    outside, step = float(values.max()), spread
    inside = outside - step
    while not rejected(inside):
        step *= 2
        inside = outside - step
        if not math.isfinite(inside) or step > FURTHEST * (spread + abs(outside)):
            return -math.inf
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if rejected(middle) else (inside, middle)
    return inside


def _log_capital(ratios: np.ndarray, counts: np.ndarray) -> float:
    """Return the logarithm of the mean over the stakes of the product of 1 + stake (ratio - 1)."""
    with np.errstate(divide="ignore"):
        logs = np.log1p(STAKES[:, None] * (ratios - 1)) @ counts
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


LEVEL = 0.95


@dataclass(frozen=True)
class Median:
    """A sample's median, and order statistics that enclose the law's median at the stated level, whatever the law."""

    value: float
    interval: tuple[float, float]
    level: float
    n: int


def median_of(values: Sequence[float], *, level: float = LEVEL) -> Median:
    """Return the shortest symmetric pair of order statistics at ``level``; the extremes, at theirs, if there are too
    few.

    Parameters
    ----------
    values : sequence of float
        Independent draws of one law, which may be infinite.  The level of the k-th smallest and k-th largest of n is at
        least 1 - 2 P(Bin(n, 1/2) < k).
    """
    from scipy.stats import binom

    x = np.sort(np.asarray(values, float))
    n = x.size
    if n == 0:
        raise ValueError("a median needs at least one value")
    k = max([k for k in range(1, (n + 1) // 2 + 1) if 1 - 2 * binom.cdf(k - 1, n, 0.5) >= level], default=1)
    middle = float(x[n // 2] if n % 2 or x[n // 2 - 1] == x[n // 2] else (x[n // 2 - 1] + x[n // 2]) / 2)
    return Median(middle, (float(x[k - 1]), float(x[n - k])), float(max(0.0, 1 - 2 * binom.cdf(k - 1, n, 0.5))), n)
