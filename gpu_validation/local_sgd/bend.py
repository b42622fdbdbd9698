"""How far a worker's loss deviates from a quadratic between its own model and the mean (error of the trapezoid rule).

On one batch a worker's loss f has the gradient h at the worker's model y, and u at the mean x.  The bend is
f(y) - f(x) - <h + u, y - x>/2.  The curve is <h - u, y - x>/2.  Terms linear in the model, such as additive noise of
the batch, cancel in both.  ``bounds.schedules.steady`` uses them.
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
    """Return bend and curve of a loss.

    ``rise`` is f(y) - f(x).  ``last`` and ``again`` are h and u per parameter, where None counts as zero.  ``place``
    and ``mean`` are y and x per parameter.
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


def squared_distance(place: Sequence[torch.Tensor], mean: Sequence[torch.Tensor]) -> float:
    """Return |y - x|^2 of two models, each a list of its parameters."""
    return sum(float((y - x.detach()).flatten().double().square().sum()) for y, x in zip(place, mean, strict=True))
