"""By how much a worker's loss is no quadratic between its own model and the mean: the trapezoid rule's error.

A worker's loss f on one batch has the value f(y) and the gradient h at the worker's model y, f(x) and u at the mean x.
The bend is f(y) - f(x) - <h + u, y - x>/2, the curve <h - u, y - x>/2.  What is linear in the model, the batch's
additive noise among it, is in neither.  ``bounds.schedules.steady`` derives what they tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def bend(
    rise: float,
    last: Sequence[torch.Tensor | None],
    again: Sequence[torch.Tensor | None],
    place: Sequence[torch.Tensor],
    mean: Sequence[torch.Tensor],
) -> tuple[float, float]:
    """Return the bend and the curve of a loss.

    Parameters
    ----------
    rise : float
        f(y) - f(x).
    last : sequence of tensor or None
        h, of every parameter; None counts as zero.
    again : sequence of tensor or None
        u, likewise.
    place : sequence of tensor
        y.
    mean : sequence of tensor
        x.
    """
    slope = slope_at_mean = 0.0
    for h, u, y, x in zip(last, again, place, mean, strict=True):
        way = (y - x.detach()).flatten().double()
        slope += _along(h, way)
        slope_at_mean += _along(u, way)
    return rise - (slope + slope_at_mean) / 2, (slope - slope_at_mean) / 2


def _along(gradient: torch.Tensor | None, way: torch.Tensor) -> float:
    if gradient is None:
        return 0.0
    detached = gradient.detach()
    return float((detached.to_dense() if detached.layout is not torch.strided else detached).flatten().double() @ way)
