"""Largest magnitude, sum of magnitudes and energy of each run of ``step`` coordinates.

Sums are float64 in one fixed order, so that every back end gives the same bits: of each 4096 terms, lane l of 64
adds the terms l, 64 + l, 128 + l, ... in turn, and the lanes are added pairwise by halves (l and l + 32, then
l and l + 16, ...); the sums of the pieces of 4096 are summed in the same order.  Missing terms count as 0.
"""

from __future__ import annotations

from typing import Protocol

import torch

LANES = 64
PIECE = 4096
LARGEST = 2.0**128 - 2.0**104  # finite binary32 number


class Norms(Protocol):
    """Numbers of each run of ``step`` coordinates of x: contiguous float32, shape (d,); there are ceil(d/step) runs."""

    def largest(self, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return ``max|x|`` of each run: float32; NaN or infinite if and only if some entry is."""

    def absolute_sum(self, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return the sum of magnitudes of each run: float64."""

    def energy(self, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return the sum of squares of each run: float64."""

    def euclidean(self, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return the Euclidean norm of each run, rounded up: float32.

        Raises
        ------
        ValueError
            If one is beyond binary32.
        """


def beyond_binary32(norm: float) -> ValueError:
    """Return what to raise for a norm that is too large."""
    return ValueError(f"the scale of x must fit binary32 (<= {LARGEST:.4g}); got {norm:.4g}: rescale x")
