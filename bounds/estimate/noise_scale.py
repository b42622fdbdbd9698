"""Gradient variance and noise scale from two batch sizes at the same point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..interval import Interval
from .estimate import Estimate, finite_vector, mean_estimate


def variance_from_half_batches(squared_differences: Sequence[float] | np.ndarray, *, level: float = 0.95) -> Estimate:
    """Return sigma^2 of the gradient of a whole mini-batch from its two halves, g_a and g_b at the same point.

    Parameters
    ----------
    squared_differences : sequence of float or ndarray
        ``|g_a - g_b|^2`` of independent mini-batches.  ``|g_a - g_b|^2/2`` estimates the variance of one half, half of
        that the variance of their mean.  Unbiased if both halves see the same dropout mask and batch-norm mode, and
        samples are drawn independently.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For negative values.
    """
    values = finite_vector("squared_differences", squared_differences)
    if values.min() < 0:
        raise ValueError(f"squared_differences must be >= 0; got {values.min()}")
    return mean_estimate(values / 4, level, lower=0.0)


@dataclass(frozen=True)
class NoiseScale:
    """Noise of a gradient against its size, from norms at two batch sizes.

    Parameters
    ----------
    trace : Estimate
        Tr Sigma, variance of one sample's gradient.
    gradient2 : Estimate
        ``|grad F|^2``.
    scale : Estimate
        trace/gradient2.

    Notes
    -----
    The scale's interval combines the ends of the other two, each taken at level (1 + level)/2.  Its upper
    end is infinite if the gradient is not distinguishable from zero.
    """

    trace: Estimate
    gradient2: Estimate
    scale: Estimate

    def variance_of_batch(self, batch: int) -> Estimate:
        """Return sigma^2 = tr Sigma/b of a mini-batch of b samples.

        Parameters
        ----------
        batch : int
            Number of samples in a mini-batch.

        Raises
        ------
        ValueError
            For b < 1.
        """
        if batch < 1:
            raise ValueError(f"batch must be >= 1; got {batch}")
        return self.trace.scaled(1 / batch)


def noise_scale(
    small_norms2: Sequence[float] | np.ndarray,
    large_norms2: Sequence[float] | np.ndarray,
    *,
    small: int,
    large: int,
    level: float = 0.95,
) -> NoiseScale:
    """Return McCandlish et al. (2018, arXiv:1812.06162): squared gradient norms at two batch sizes give trace and
    signal.

    Parameters
    ----------
    small_norms2 : sequence of float or ndarray
        ``|g|^2`` with batches of ``small`` samples, shape (n,).  Entry i is measured at the same point as entry i of
        ``large_norms2``, for instance at the first step after an averaging: before and after averaging the gradients.
    large_norms2 : sequence of float or ndarray
        ``|g|^2`` with batches of ``large`` > ``small`` samples, shape (n,).
    small : int
        Samples in a small batch.
    large : int
        Samples in a large batch.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For unequal lengths or batch sizes out of order.

    Notes
    -----
    gradient2 = (B G_B - b G_b)/(B - b), trace = (G_b - G_B)/(1/b - 1/B), averaged separately over the pairs.  Bias:
    both are unbiased, their ratio is not; gradient2 is very noisy, and may be negative, where the gradient is far below
    the noise.
    """
    low, high = finite_vector("small_norms2", small_norms2), finite_vector("large_norms2", large_norms2)
    if low.size != high.size:
        raise ValueError(f"the norms must come in pairs; got {low.size} small and {high.size} large ones")
    if not 1 <= small < large:
        raise ValueError(f"needs 1 <= small < large; got small = {small}, large = {large}")
    part = (1 + level) / 2
    trace = mean_estimate((low - high) / (1 / small - 1 / large), part)
    gradient2 = mean_estimate((large * high - small * low) / (large - small), part)
    ratio = trace.value / gradient2.value if gradient2.value > 0 else math.inf
    numerator, denominator = trace.interval, gradient2.interval
    top = max(float(numerator.hi), 0.0) / float(denominator.lo) if denominator.lo > 0 else math.inf
    bottom = max(float(numerator.lo), 0.0) / float(denominator.hi) if denominator.hi > 0 else 0.0
    scale = Estimate(ratio, Interval(bottom, top), level, "a ratio of two unbiased means")
    return NoiseScale(trace, gradient2, scale)
