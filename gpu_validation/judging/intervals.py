"""Confidence intervals for a mean with a guaranteed level for every distribution on a declared range.

Let y >= floor be drawn with conditional means of at most mu.  For 0 <= stake <= 1 put ::

    f = 1 + stake ((y - floor) / (mu - floor) - 1) >= 0,     E f <= 1.

The product of f over the draws is a nonnegative supermartingale that starts at 1, and so is its mean over several
stakes.  By Markov's inequality it exceeds 1/level with probability at most ``level``.  Every mu for which it does is
rejected.  The product decreases in mu, so the remaining values form an interval above a lower end.  (Hoeffding 1963 and
Waudby-Smith and Ramdas 2024 use the same bets.)  The upper end is the lower end of ceiling - y.  Only the range of the
distribution is assumed: n equal draws give a wide interval, not a point.

Every interval contains the measured mean: an end on the wrong side is moved to the mean.  A wider interval misses no
more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..records.compression import Sample

Interval = tuple[float, float]
ACQUIT = 0.05  # error probability of the end that confirms a bound; the end that rejects it has the run's level
UNJUDGED = 0.05  # level of intervals without a verdict, outside the budget
UNKNOWN = (-math.inf, math.inf)  # interval of a number that was not measured
CAP = 4  # times an upper bound: without a declared largest value, a larger draw leaves the upper end open
NO_LARGEST = f"a draw exceeds {CAP} times the bound and no largest value is declared: draws cannot bound the mean above"
STAKES = np.concatenate([[1.0, 0.99, 0.95], np.geomspace(0.9, 1e-5, 30)])
RATES = np.geomspace(1e-4, 3, 40)  # times one over the standard deviation
FURTHEST = 1e9  # spreads from the draws, beyond which a mean counts as unbounded
BISECTIONS = 50


def mean_interval(sample: Sample, *, below: float, above: float, floor: float, ceiling: float = math.inf) -> Interval:
    """Return an interval whose ends miss the mean with at most the probabilities ``below`` and ``above``.

    The draws are independent, or have conditional means in the interval.  ``floor`` and ``ceiling`` are the declared
    range of every draw; an infinite one leaves its end open.

    Raises
    ------
    ValueError
        If a draw lies outside the declared range.
    """
    if not (floor <= sample.low and sample.high <= ceiling):
        raise ValueError(
            f"the draws must lie in the declared range [{floor:g}, {ceiling:g}]; "
            f"got [{sample.low:g}, {sample.high:g}]: declare the range of the distribution"
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
    """Return an interval for a mean whose draws have at most a declared ``variance`` and any range (Catoni 2012).

    With psi(x) = log(1 + x + x^2/2) for x >= 0 and psi(-x) = -psi(x), E exp psi(rate (y - mu)) is at most
    1 + rate^2 variance/2.  Markov's inequality then gives the ends.  For the arguments see ``mean_interval``.
    """
    return _from_variance(_catoni_end, sample, variance, below, above)


def anytime_interval(sample: Sample, variance: float, *, below: float, above: float) -> Interval:
    """Return an anytime-valid interval for a mean whose draws have at most a declared ``variance``.

    The capital of ``variance_interval`` at a fixed rate is a nonnegative supermartingale, and so is its mean over
    several rates that do not depend on the number of draws (Ville's inequality).  For the arguments see
    ``mean_interval``.
    """
    return _from_variance(_anytime_end, sample, variance, below, above)


def interval_below(sample: Sample, bound: float, level: float, *, floor: float, ceiling: float | None) -> Interval:
    """Return the interval for the claim "the mean is at most ``bound``": ``level`` below, ACQUIT above.

    ``ceiling`` is the largest possible draw.  If it is None, CAP times the bound replaces it as long as no draw exceeds
    that: values rarer than the draws show may have any size.  After a larger draw the upper end is open.
    """
    if ceiling is None:
        cap = floor + CAP * max(bound - floor, 0.0)
        ceiling = cap if sample.high <= cap else math.inf
    return mean_interval(sample, below=level, above=ACQUIT, floor=floor, ceiling=ceiling)


def student_interval(sample: Sample, level: float) -> Interval:
    """Return Student's two-sided interval for means without a verdict; its level is exact for Gaussian draws only.

    A single draw, equal draws and infinite draws give an infinite interval, because their spread is unknown.
    """
    from scipy.special import stdtrit

    if sample.n < 2 or sample.low == sample.high or not math.isfinite(sample.sd):
        return -math.inf, math.inf
    half = float(stdtrit(sample.n - 1, 1 - level / 2)) * sample.sd / math.sqrt(sample.n)
    return sample.mean - half, sample.mean + half


def share_interval(hits: int, trials: int, level: float) -> Interval:
    """Return the two-sided interval of Clopper and Pearson for a probability."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, level / 2))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1 - level / 2))
    return low, high


def _containing(interval: Interval, sample: Sample) -> Interval:
    """Return the interval widened to contain the mean.

    A sample with an infinite draw rejects every finite mean at any level; its mean is the interval.
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
    """Return both ends of a mean from ``end``, which returns the lower end of values with counts."""
    if not variance >= 0:
        raise ValueError(f"a declared variance must be >= 0; got {variance}: correct the claim")
    if not math.isfinite(sample.mean) or math.isinf(variance):
        return _containing((-math.inf, math.inf), sample)
    counts = np.array([count for _, _, count in sample.atoms], float)
    lows, highs = (np.array([atom[i] for atom in sample.atoms]) for i in (0, 1))
    ends = end(lows, counts, variance, below), -end(-highs, counts, variance, above)
    return _containing(ends, sample)


def _lower_end(values: np.ndarray, counts: np.ndarray, level: float) -> float:
    """Return the largest mean that draws >= 0 reject as an upper bound; 0 if they reject none."""
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
    """Return the largest mean that the draws reject as an upper bound; -inf if they reject none."""
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
    """Return the largest mean that the draws reject as an upper bound at any time; -inf if they reject none."""
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
    """Return the log of the mean over stakes of the product of 1 + stake (ratio - 1)."""
    with np.errstate(divide="ignore"):
        logs = np.log1p(STAKES[:, None] * (ratios - 1)) @ counts
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


LEVEL = 0.95


@dataclass(frozen=True)
class Median:
    """Median of a sample, with order statistics that enclose the median of any distribution at the stated level."""

    value: float
    interval: tuple[float, float]
    level: float
    n: int


def tail_of(values: Sequence[float], share: float) -> Median:
    """Return the least value that ``share`` of the values do not exceed, with an interval up to the largest."""
    tail = float(np.quantile(values, share, method="inverted_cdf"))
    return Median(tail, (tail, max(values)), 0.0, len(values))


def number_of(value: float, n: int) -> Median:
    """Return a number that n draws gave, with no interval."""
    return Median(value, (value, value), 0.0, n)


def median_of(values: Sequence[float], *, level: float = LEVEL) -> Median:
    """Return the median with the shortest symmetric pair of order statistics at ``level``.

    With too few values the extremes are returned with their own level.  The values are independent draws and may be
    infinite.  The level of the k-th smallest and k-th largest of n is at least 1 - 2 P(Bin(n, 1/2) < k).
    """
    from scipy.stats import binom

    x = np.sort(np.asarray(values, float))
    n = x.size
    if n == 0:
        raise ValueError("a median needs at least one value")
    k = max([k for k in range(1, (n + 1) // 2 + 1) if 1 - 2 * binom.cdf(k - 1, n, 0.5) >= level], default=1)
    middle = float(x[n // 2] if n % 2 or x[n // 2 - 1] == x[n // 2] else (x[n // 2 - 1] + x[n // 2]) / 2)
    return Median(middle, (float(x[k - 1]), float(x[n - k])), float(max(0.0, 1 - 2 * binom.cdf(k - 1, n, 0.5))), n)
