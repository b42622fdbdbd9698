"""Stochastic rounding fused with its random numbers: level_i = sign(x_i) floor(rate ``|x_i| + w_i 2^-32``).

w_i is the word of coordinate i (``philox``: tile order).  Products and sums are float64, each rounded by itself.  One
rate serves each run of ``step`` coordinates;

x ::

    Contiguous float32, shape (d,).

rates ::

    float64, shape (ceil(d/step),), such that no rate ``|x_i|`` exceeds 2^20.
"""

from __future__ import annotations

import math

import torch

from ..backend import implementation
from ..philox import Stream


def signed(x: torch.Tensor, step: int, rates: torch.Tensor, stream: Stream) -> torch.Tensor:
    """Return the levels: int32, shape (d,)."""
    return implementation("levels", x).signed(x, step, rates, stream)


def width_of(most: int) -> int:
    """Return bits of one of the 2 most + 1 levels -most .. most."""
    return (2 * most).bit_length()


def encode(x: torch.Tensor, step: int, rates: torch.Tensor, most: int, stream: Stream, room: int = 0) -> torch.Tensor:
    """Return the numbers level + most in fields of ``width_of(most)`` bits, after ``room`` bytes for the caller to
    fill.

    Parameters
    ----------
    most : int
        At least every ``|level|``, at most 2^20.  uint8 tensor, shape (room + ceil(d width/8),).
    """
    return implementation("levels", x).encode(x, step, rates, most, stream, room)


def decode(
    payload: torch.Tensor, d: int, step: int, spacings: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Return (spacing times level, float32 of shape (d,); whether a run reaches level +-most; whether all is in range).

    Parameters
    ----------
    spacings : tensor
        float64, shape (ceil(d/step),).  Out of range: a level beyond most, or not 0 at spacing 0.
    """
    return implementation("levels", payload).decode(payload, d, step, spacings, most)


def rate_of(most: int, scales: torch.Tensor) -> torch.Tensor:
    """Return most / scale rounded up, so that a coordinate as large as its scale reaches ``most``; 0 for scale 0.

    Parameters
    ----------
    scales : tensor
        float64.  A level never exceeds ``most``: the excess of the rate is far below 2^-32.
    """
    up = torch.nextafter(most / scales, torch.full_like(scales, math.inf))
    return torch.where(scales > 0, up, 0.0)
