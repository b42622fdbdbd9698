"""Stochastic rounding fused with its random numbers: level_i = sign(x_i) floor(rate ``|x_i| + w_i 2^-32``).

w_i is the word of coordinate i (``philox``: tile order).  Products and sums are float64, each rounded by itself.  Every
run of ``step`` coordinates has its rate: most / scale rounded up, so that a coordinate as large as its scale reaches
``most``, and none exceeds it, for the excess is far below 2^-32; 0 for scale 0.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch

from ..philox import Stream


class Levels(Protocol):
    """Rounding, alone and with its code."""

    def signed(self, x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream) -> torch.Tensor:
        """Return the levels: int32, shape (d,).

        Parameters
        ----------
        x : tensor
            Contiguous float32, shape (d,).
        step : int
            Coordinates of a run.
        scales : tensor
            float64, shape (ceil(d/step),), none below the largest magnitude of its run unless 0.
        most : int
            The level of the scale, at most 2^20.
        stream : Stream
            The words.
        """

    def encode(
        self, x: torch.Tensor, step: int, scales: torch.Tensor, most: int, stream: Stream, room: int = 0
    ) -> torch.Tensor:
        """Return the numbers level + most in fields of ``width_of(most)`` bits, after ``room`` bytes for the caller to
        fill: uint8, shape (room + ceil(d width/8),); arguments as for ``signed``.
        """

    def decode(
        self, payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
    ) -> tuple[torch.Tensor, torch.Tensor, bool]:
        """Return (spacing times level, float32 of shape (d,); whether a run reaches +-most; whether all is in range).

        Parameters
        ----------
        spacings : tensor
            float64, shape (ceil(d/step),).  Out of range: a level beyond most, or not 0 at spacing 0.
        """


def width_of(most: int) -> int:
    """Return bits of one of the 2 most + 1 levels -most .. most."""
    return (2 * most).bit_length()


def rate_of(most: int, scales: torch.Tensor) -> torch.Tensor:
    """Return the rates of runs with these scales, float64."""
    up = torch.nextafter(most / scales, torch.full_like(scales, math.inf))
    return torch.where(scales > 0, up, 0.0)
