"""Largest magnitude, sum of magnitudes and energy of each run of ``step`` coordinates.

Sums are float64 in one fixed order, so that every back end gives the same bits: of each 4096 terms, lane l of 64
adds the terms l, 64 + l, 128 + l, ... in turn, and the lanes are added pairwise by halves (l and l + 32, then
l and l + 16, ...); the sums of the pieces of 4096 are summed likewise.  Missing terms count as 0.
"""

from __future__ import annotations

import torch

from ..backend import implementation

LANES = 64
PIECE = 4096


def largest(x: torch.Tensor, step: int) -> torch.Tensor:
    """Return ``max|x|`` of each run: float32, shape (ceil(d/step),); NaN or infinite if and only if some entry is.

    Parameters
    ----------
    x : tensor
        Contiguous float32, shape (d,).
    """
    return implementation("norms", x).largest(x, step)


def absolute_sum(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum of magnitudes of each run: float64, shape (ceil(d/step),); x as for ``largest``."""
    return implementation("norms", x).absolute_sum(x, step)


def energy(x: torch.Tensor, step: int) -> torch.Tensor:
    """Sum of squares of each run: float64, shape (ceil(d/step),); x as for ``largest``."""
    return implementation("norms", x).energy(x, step)
