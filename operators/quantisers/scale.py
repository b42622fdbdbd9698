"""Scales of a vector: largest magnitude, norm and mean, accumulated in float64 and sent as binary32."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch

from ..inputs import SMALLEST
from ..kernels.norms.cpu import LANES, sum_of_pieces, sums
from ..kernels.norms.cpu import PIECE as TILE
from ..kernels.norms.cpu import absolute_sum as absolute_sums
from ..kernels.norms.cpu import energy as energies
from ..kernels.norms.cpu import largest as tops
from ..kernels.norms.cpu import largest_pattern as largest_pattern
from ..kernels.threads import shared

TINY = SMALLEST  # below this largest magnitude a scaled operator sends zero
_LARGEST = float(np.finfo(np.float32).max)


def largest(x: np.ndarray) -> np.float32:
    """Return ``max|x|`` of a contiguous float32 array of finite numbers, by their patterns; 0 for an empty one."""
    patterns = x.view(np.uint32)
    tops = shared(x.size, TILE, lambda start, stop: largest_pattern(patterns[start:stop]))
    return np.uint32(max(tops)).view(np.float32)


def energy(x: np.ndarray) -> float:
    """Return the sum of squares in float64, in the fixed order of ``kernels.norms``; 0 for an empty array."""
    return float(sums(x, x.size, True)[0]) if x.size else 0.0


def tops_and_sums(x: np.ndarray, *, squares: bool) -> np.ndarray:
    """Return the largest magnitude and the sum of each tile of 4096 coordinates: float64, shape (ceil(n/4096), 2).

    Parameters
    ----------
    x : ndarray
        Finite float32, shape (n,).
    squares : bool
        Whether squares are summed, not magnitudes.
    """
    tensor = torch.from_numpy(x)
    sums = (energies if squares else absolute_sums)(tensor, TILE).numpy()
    return np.stack([tops(tensor, TILE).numpy().astype(np.float64), sums], axis=1)


def total(sums: np.ndarray) -> float:
    """Return ``energy``, or the sum of magnitudes, of a vector from the sums of its tiles, bit for bit.

    Parameters
    ----------
    sums : ndarray
        float64, shape (ceil(d/4096),).
    """
    return float(sum_of_pieces(np.ascontiguousarray(sums), np.empty(LANES)))


def norm_of(runs: Callable[[], Iterable[tuple[slice, np.ndarray]]], rounded: Callable[[float], float]) -> float:
    """Return the Euclidean norm of a vector that is read run by run, as binary32; 0 for a negligible one.

    Parameters
    ----------
    runs : callable
        Reads the runs, all but the last of whole tiles of 4096 coordinates.
    rounded : callable
        ``nearest`` or ``round_up_to_float32``.
    """
    survey = np.concatenate([tops_and_sums(x, squares=True) for _, x in runs()])
    return 0.0 if survey[:, 0].max() < TINY else rounded(math.sqrt(total(survey[:, 1])))


def negligible(x: np.ndarray) -> bool:
    """Return whether a scaled operator sends the zero vector: ``max|x| < 2^-126``."""
    return bool(largest(x) < TINY)


def round_up_to_float32(value: float) -> float:
    """Return the least binary32 number that is not below ``value`` >= 0.

    Raises
    ------
    ValueError
        If that number is infinite.
    """
    if value > _LARGEST:
        raise ValueError(f"the scale of x must fit binary32 (<= {_LARGEST:.4g}); got {value:.4g}: rescale x")
    rounded = np.float32(value)  # compared as a float64: numpy would first round the other side to binary32
    return float(rounded if float(rounded) >= value else np.nextafter(rounded, np.float32(np.inf)))


def nearest(value: float) -> float:
    """Return the binary32 number nearest to ``value`` >= 0.

    Raises
    ------
    ValueError
        If it is infinite.
    """
    if value > _LARGEST:
        raise ValueError(f"the scale of x must fit binary32 (<= {_LARGEST:.4g}); got {value:.4g}: rescale x")
    return float(np.float32(value))
