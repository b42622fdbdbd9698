"""The initial gap F(x_1) - inf F from losses at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .estimate import Estimate, mean_estimate


def gap_from_losses(losses: Sequence[float] | np.ndarray, *, loss_inf: float = 0.0, level: float = 0.95) -> Estimate:
    """Return the mean of independent mini-batch losses at the start, minus loss_inf.

    Parameters
    ----------
    losses : sequence of float or ndarray
        At the initial model, shape (n,); with a single one the interval is infinite.
    loss_inf : float, optional
        inf F, or a number that is known to lie below it, such as 0 for a loss that cannot be negative.
    level : float, optional
        Confidence of the interval, 0 < level < 1.

    Raises
    ------
    ValueError
        For no loss or one that is not finite, or if their mean lies below loss_inf.

    Notes
    -----
    Bias: high by inf F - loss_inf, which keeps the bounds valid; 0 is inf F only if the model interpolates.
    """
    estimate = mean_estimate(np.asarray(losses, np.float64) - loss_inf, level, lower=0.0)
    if estimate.value < 0:
        raise ValueError(f"the mean loss lies below loss_inf = {loss_inf} by {-estimate.value}: lower loss_inf")
    return replace(estimate, bias="high by inf F - loss_inf, with which the bounds stay valid")
